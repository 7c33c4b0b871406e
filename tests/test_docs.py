"""The code in docs/*.md runs and prints what the pages say, and what they say is refused is refused in those words.

Relies on docs/ and the package. Blocks of one page run in order, in one namespace; a ```text block after code is what it prints.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import autograd_cy as ag
from autograd_cy.array.errors import CaptureError
from autograd_cy.ops import TABLE

DOCS = Path(__file__).resolve().parents[1] / "docs"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WITH_CODE = [path for path in sorted(DOCS.glob("*.md")) if "```python" in path.read_text()]


@pytest.mark.parametrize("path", WITH_CODE, ids=lambda path: path.name)
def test_blocks_run(path, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, printed = {"__name__": "__main__"}, ""
    for kind, text in BLOCK.findall(path.read_text()):
        if kind == "text":
            assert printed.split() == text.split()
        elif kind == "python":
            exec(compile(text, "demo.py", "exec"), names)
            printed = capsys.readouterr().out


def refusals():
    """(statement, beginning of the message) of the table in compile.md."""
    section = (DOCS / "compile.md").read_text().partition("## What is refused")[2].partition("\n\nOther messages")[0]
    return re.findall(r"^\| `(.+?)`[^|]* \| ([^|]+) \|", section, re.MULTILINE)


@pytest.mark.parametrize(("statement", "message"), refusals(), ids=lambda text: text)
def test_refusals(statement, message):
    names = {}
    exec("""if True:
        import random, time
        import numpy as np
        import autograd_cy as ag
        log, counts, rates = [], {"steps": 0}, iter([0.1, 0.2, 0.3])
        w = ag.ones(3, requires_grad=True)
        made_before = w * 2
        scheduler = ag.optim.lr_scheduler.StepLR(ag.optim.SGD([w], lr=0.1), 1)

        @ag.compile
        def step(x):
            loss = (x * w).sum()
            """ + statement + """
            return loss
        """, names)
    with pytest.raises(CaptureError) as caught:
        for _ in range(6):
            names["step"](ag.ones(3))
    assert str(caught.value).startswith(message)


def test_links():
    """Links between the pages lead somewhere."""
    for path in [*DOCS.glob("*.md"), *DOCS.parent.glob("*.md")]:
        for target in re.findall(r"\]\(([^):#]+)\)", path.read_text()):
            assert os.path.exists(path.parent / target), f"{path.name}: {target}"


@pytest.mark.skipif(not (DOCS.parent / "autograd_cy").is_dir(), reason="runs in a source tree only")
def test_reference(tmp_path):
    """The reference can be written, and has every row and every function."""
    subprocess.run([sys.executable, DOCS / "make_reference.py", tmp_path], check=True)
    pages = {path.stem: path.read_text() for path in tmp_path.glob("*.md")}
    for row in TABLE.values():
        start = pages["operations"].index(f"**{row.name}**(")
        entry = pages["operations"][start:pages["operations"].find("\n**", start)]
        assert all(f"d{i} = `" in entry for i in row.rules), row.name
        assert row.special in entry, row.name
        assert not row.special or f"| {row.name} |" in pages["special_points"], row.name
    for name in ag.__all__:
        if callable(getattr(ag, name)) and not isinstance(getattr(ag, name), type) and not name.endswith("_"):
            assert f"**{name}**(" in pages["operations"] or f"**ag.{name}" in pages["functions"] or name in ("compile", "cond", "scan", "while_loop")
    assert "**ag.compile(" in pages["graph"] and "**ag.nn.Linear(" in pages["layers"]
