# Set-up, build, tests, checks and benchmarks; `make help` lists the targets.
#
# Relies on Python 3.11 or newer (another one: `make PYTHON=python3.12 ...`), a C compiler and pyproject.toml.
# CI and the README rely on it.

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check -q
ROUNDS ?= 5
PROGRAMS ?= 20000
ARGS ?=

# Everything that makes it necessary to build again; generated sources live in build/.
SOURCES := setup.py merging.py rewriting.py hot_functions.txt $(shell find autograd_cy -name '*.pyx' -o -name '*.pxd' -o -name '*.h') $(shell find autograd_cy/ops -name '*.py' 2>/dev/null)
LINTED := autograd_cy bench examples tests setup.py merging.py rewriting.py .ci

.PHONY: help build test oracle asan hot check bench peers reference test-sdist clean distclean
.DEFAULT_GOAL := help

help:
	@echo 'make bench       set up, build, then XOR, Iris and the comparison of the engines (ROUNDS=5)'
	@echo 'make test        set up, build, then the tests (ARGS="-k name" chooses)'
	@echo 'make check       the linters, the layer test and the comparison of the stubs'
	@echo 'make build       set up and build in place'
	@echo 'make peers       make bench beside PyTorch, JAX, HIPS autograd and scikit-learn (installs them)'
	@echo 'make oracle      compare random programs with PyTorch (PROGRAMS=20000)'
	@echo 'make reference   docs/reference/: every operation with its formula, derivatives and special points'
	@echo 'make asan        call everything with hostile input under the sanitizers of gcc (about 8 minutes)'
	@echo 'make hot         which functions ordinary calls go through: writes hot_functions.txt (needs valgrind)'
	@echo 'make test-sdist  build an sdist, install it into a fresh environment, run the tests from outside this tree'
	@echo 'make clean       remove what was built; make distclean removes .venv, too'

# An environment with the build's and the tests' requirements. The package itself is built in place and found through a
# .pth file: an editable install would compile everything again after each change, in a directory of its own.
$(VENV)/ready: pyproject.toml .ci/requirements.py
	@$(PYTHON) -c 'import sys; sys.exit("autograd_cy needs Python 3.11 or newer (make PYTHON=...)" if sys.version_info < (3, 11) else 0)'
	@echo 'setting up $(VENV)'
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@$(PYTHON) .ci/requirements.py test bench > $(VENV)/requirements.txt
	@$(PIP) install -r $(VENV)/requirements.txt
	@echo '$(CURDIR)' > "$$($(PY) -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/autograd_cy_in_place.pth"
	@touch $@

$(VENV)/check: $(VENV)/ready
	@$(PYTHON) .ci/requirements.py check > $(VENV)/requirements-check.txt
	@$(PIP) install -r $(VENV)/requirements-check.txt
	@touch $@

$(VENV)/peers: $(VENV)/ready
	@$(PYTHON) .ci/requirements.py peers > $(VENV)/requirements-peers.txt
	@$(PIP) install -r $(VENV)/requirements-peers.txt
	@touch $@

build/ready: $(VENV)/ready $(SOURCES)
	@$(PY) -c 'import os, sys, sysconfig; h = os.path.join(sysconfig.get_path("include"), "Python.h"); \
	  sys.exit(None if os.path.exists(h) else h + " is missing: install the development files of this Python (python3-dev)")'
	@echo 'building (the first time takes a few minutes)'
	@mkdir -p build
	@$(PY) setup.py -q build_ext --inplace > build/log 2>&1 \
	  || { tail -n 60 build/log; exit 1; }
	@touch $@

build: build/ready

test: build/ready
	$(PY) -m pytest $(ARGS)

# PROGRAMS random programs here and in PyTorch, in two processes; a mismatch is printed as a small program.
oracle: build/ready $(VENV)/peers
	@mkdir -p build
	@$(PY) -m pytest -m oracle --programs $(PROGRAMS) --share 2/2 -p no:cacheprovider > build/oracle.log 2>&1 & other=$$!; \
	  $(PY) -m pytest -m oracle --programs $(PROGRAMS) --share 1/2; own=$$?; wait $$other; its=$$?; tail -n 40 build/oracle.log; \
	  exit $$((own + its))

# Which functions are worth speed: bench/hot.py runs ordinary small calls in a build without inlining.
hot: $(VENV)/ready
	@mkdir -p build/hot
	AUTOGRAD_CY_PROFILE=1 $(PY) setup.py -q build_py --build-lib build/hot build_ext --build-lib build/hot \
	  --build-temp build/hot/temp > build/hot/log 2>&1 || { tail -n 60 build/hot/log; exit 1; }
	PYTHONPATH=build/hot:. $(PY) -P -m bench.hot

# Everything under AddressSanitizer and UndefinedBehaviorSanitizer, in a build of its own: tests/sanitize.py says how.
SANITIZERS := address,undefined
asan: $(VENV)/ready
	@mkdir -p build/asan
	AUTOGRAD_CY_SANITIZE=$(SANITIZERS) $(PY) setup.py -q build_py --build-lib build/asan build_ext --build-lib build/asan \
	  --build-temp build/asan/temp > build/asan/log 2>&1 || { tail -n 60 build/asan/log; exit 1; }
	$(PY) tests/sanitize.py build/asan $(ARGS)

check: $(VENV)/check build/ready
	$(PY) -m ruff check $(LINTED)
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" cython-lint autograd_cy bench
	$(PY) -m codespell_lib $(LINTED) docs *.md Makefile
	$(PY) -m pytest -q tests/test_layers.py
	$(PY) -m pytest -q tests/test_stubs.py
	$(PY) -m mypy.stubtest autograd_cy --mypy-config-file pyproject.toml --allowlist tests/stubtest_allowlist.txt

bench: build/ready
	$(PY) -m bench xor --rounds $(ROUNDS)
	$(PY) -m bench iris --rounds $(ROUNDS)
	$(PY) -m bench graph

peers: build/ready $(VENV)/peers
	$(PY) -m bench xor --peers --rounds $(ROUNDS)
	$(PY) -m bench iris --peers --rounds $(ROUNDS)
	$(PY) -m bench ops --peers
	$(PY) -m bench graph --peers

reference: build/ready
	$(PY) docs/make_reference.py

# The tests run in a directory that holds them, the examples and the benchmarks, but not the package's sources.
test-sdist: $(VENV)/ready
	rm -rf build/sdist && mkdir -p build/sdist
	$(PY) -c 'from setuptools import build_meta; build_meta.build_sdist("build/sdist")' > build/sdist/log
	@if tar tzf build/sdist/*.tar.gz | grep -E '\.(c|so|o)$$|/build/'; then echo 'built files in the sdist'; exit 1; fi
	$(PYTHON) -m venv build/sdist/venv
	build/sdist/venv/bin/python -m pip --disable-pip-version-check -q install "$$(ls $(CURDIR)/build/sdist/*.tar.gz)[test,bench]"
	set -e; outside=$$(mktemp -d); trap 'rm -rf "$$outside"' EXIT; \
	  tar xzf build/sdist/*.tar.gz -C "$$outside" --strip-components=1; rm -rf "$$outside/autograd_cy"; \
	  cd "$$outside"; $(CURDIR)/build/sdist/venv/bin/python -m pytest $(ARGS)

clean:
	rm -rf build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find autograd_cy bench tests examples \( -name '*.so' -o -name '*.c' -o -name __pycache__ \) -prune -exec rm -rf {} +

distclean: clean
	rm -rf $(VENV)
