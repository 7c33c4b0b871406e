"""Everything that users can call, on hostile input, under AddressSanitizer and UndefinedBehaviorSanitizer: what `make asan` runs.

    python tests/sanitize.py FOLDER [--seconds 200] [--seed 0] [--processes 2]

FOLDER holds the package built with AUTOGRAD_CY_SANITIZE. Each process goes on until its time is over: samples of the table in other
shapes, layouts and dtypes (forward, backward, twice, in place, captured and replayed); random programs; keys of all kinds; and public
functions, methods and layers, found by introspection, with arguments that fit and arguments that don't. Any Python exception is
right; a report of a sanitizer or a crash is not: the parent prints it with the call that it happened in.

Relies on tests/samples.py, tests/programs.py and the sanitizers of gcc. The Makefile relies on it; it is no test of its own.
"""

import argparse
import contextlib
import faulthandler
import inspect
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import warnings

NOT_CALLED = {  # files, the state of the process, and what runs without end
    "save", "load", "set_default_dtype", "set_engine", "set_num_threads", "set_record_lines", "set_cache_limit", "set_printoptions", "manual_seed", "while_loop",
    "trace", "watch", "step", "show", "draw", "compile", "share_memory_", "data_ptr", "set_state", "repl", "breakpoint", "combinations",
}   # fmt: skip
SHAPES = [(), (0,), (1,), (3,), (7,), (2, 3), (3, 3), (3, 1), (1, 4), (2, 0, 3), (2, 3, 4), (4, 17), (33, 5), (2, 1, 3, 2), (1, 1, 1, 1, 1), (2, 3, 5, 5)]
DTYPES = ["float32", "float64", "int64", "int32", "uint8", "bool"]
LAYOUTS = ["contiguous", "transposed", "sliced", "reversed", "expanded", "end", "overlapping", "offset"]
WEIRD = [None, True, False, 0, 1, -1, 2, 3, -2, 7, 31, 64, 255, 256, 1 << 31, -(1 << 31), (1 << 31) - 1, (1 << 63) - 1, -(1 << 63), 1 << 64,
         10 ** 30, 0.0, -0.0, 0.5, -1.5, 1e308, 1e-320, float("nan"), float("inf"), -float("inf"), 1 + 2j, "", "mean", "sum", "none", "max",
         "reflect", "ij", "ij,jk->ik", "linear", "bogus", b"x", (), [], {}, (0,), (1,), (-1,), (0, 0), (0, 1), (1, 0), (2, 3), (3, 2), (-1, 2), (1 << 40, 2),
         (1 << 31, 1 << 31), (1 << 62, 4), (0, 1 << 62), [0, 2], [1.5], [[0, 1], [1]], ((1, 1), (0, 2)), (1, 2, 3, 4), slice(None), slice(None, None, -1),
         slice(-(1 << 70), 1 << 70, 1 << 65), Ellipsis, object, len]   # fmt: skip


class Treacherous:
    """A number, or a sequence of it, that changes the memory, shape or list of what the call is about whenever somebody asks for it."""

    def __init__(self, value, hostile):
        self.value, self.hostile = value, hostile

    def betray(self):
        h = self.hostile
        for t in h.recent[-3:]:
            with contextlib.suppress(Exception):
                kind = h.r.randrange(8)
                if kind < 4:
                    t.data = h.ag.zeros(h.r.choice([(), (), (1,), (0,), (2, 3)]), dtype=t.dtype)
                elif kind == 4:
                    t.resize_(*reversed(t.shape))
                elif kind == 5:
                    t.t_() if t.ndim == 2 else t.unsqueeze_(0)
                elif kind == 6:
                    t.squeeze_()
                else:
                    t.transpose_(0, -1)
        if h.lists and h.r.random() < 0.5:
            h.lists.pop().clear()
        h.after = [h.ag.full((n,), -7) for n in (1, 4, 16, 64)]       # what was freed is in use again

    def __index__(self):
        self.betray()
        return int(self.value)

    def __float__(self):
        self.betray()
        return float(self.value)

    def __bool__(self):
        self.betray()
        return bool(self.value)

    def __repr__(self):
        self.betray()
        return f"Treacherous({self.value})"

    __int__ = __index__


class TreacherousSequence(Treacherous):
    def __len__(self):
        self.betray()
        return int(self.hostile.r.choice([0, 1, 2, 2, 3, 40]))

    def __getitem__(self, k):
        self.betray()
        if k > self.hostile.r.choice([1, 2, 40]):
            raise IndexError
        return self.value


class TreacherousArray(Treacherous):
    def __array__(self, *args, **kwargs):
        self.betray()
        return self.hostile.np.resize(self.value, self.hostile.r.choice(SHAPES))


class Hostile:
    """Random tensors and arguments."""

    def __init__(self, ag, np, seed):
        self.ag, self.np, self.r = ag, np, random.Random(seed)
        self.recent, self.lists, self.after, self.treachery = [], [], None, 0.0

    def treacherous(self, value=None):
        r = self.r
        value = r.choice([0, 1, 2, -1, 3, 0.5]) if not isinstance(value, (int, float)) else value
        if (kind := r.random()) < 0.5:
            return Treacherous(value, self)
        if kind < 0.6:
            return TreacherousSequence(value, self)
        if kind < 0.65:
            return TreacherousArray(value, self)
        if kind < 0.75:
            return slice(*(r.choice([None, 0, Treacherous(r.choice([0, 1, 2, -1, 50]), self)]) for _ in range(3)))
        made = [r.choice([0, 1, 2.0, True, Treacherous(value, self)]) for _ in range(r.randrange(1, 4))]
        made.insert(r.randrange(len(made) + 1), Treacherous(value, self))
        if kind < 0.85:
            return tuple(made)
        self.lists.append(made)
        return made

    def numbers(self, shape, dtype):
        n, np, r = int(self.np.prod(shape)), self.np, self.r
        kind = r.random()
        if kind < 0.6:
            values = np.array([r.uniform(-2, 2) for _ in range(min(n, 64))] or [0.0])
        elif kind < 0.8:
            values = np.array([float(r.randrange(-3, 6)) for _ in range(min(n, 64))] or [0.0])
        else:
            values = np.array([r.choice([0.0, -0.0, 1.0, np.nan, np.inf, -np.inf, 1e300, -1e20, 1e-310, 2.0 ** 63, -(2.0 ** 31)]) for _ in range(min(n, 64))] or [0.0])
        with np.errstate(all="ignore"):
            return np.resize(values, shape).astype(dtype)

    def tensor(self, shape=None, dtype=None, layout=None, grad=None):
        r = self.r
        shape = r.choice(SHAPES) if shape is None else shape
        dtype = (r.choice(DTYPES) if r.random() < 0.4 else r.choice(DTYPES[:2])) if dtype is None else dtype
        t = self.laid_out(self.numbers(shape, dtype), r.choice(LAYOUTS) if layout is None else layout)
        if (r.random() < 0.5 if grad is None else grad) and t.is_floating_point():
            t.requires_grad_(True)
        self.recent = [*self.recent[-7:], t]
        return t

    def laid_out(self, a, layout):
        """The numbers in memory of this layout; its data often ends where its storage does."""
        ag, np = self.ag, self.np
        flip = (slice(None, None, -1),) * a.ndim
        if layout == "transposed" and a.ndim > 1:
            return ag.tensor(np.ascontiguousarray(a.T)).permute(*reversed(range(a.ndim)))
        if layout == "sliced" and a.ndim:
            return ag.tensor(np.repeat(a, 2, -1))[..., ::2]
        if layout == "reversed" and a.ndim:
            return ag.tensor(np.ascontiguousarray(a[flip]))[flip]
        if layout == "expanded" and a.ndim and a.shape[0] > 0:
            return ag.tensor(np.ascontiguousarray(a[:1])).expand(*a.shape)
        if layout == "end" and a.ndim and a.shape[0] > 0:
            return ag.tensor(np.concatenate([a[:1], a]))[1:]
        if layout == "overlapping" and a.ndim == 2 and a.size:
            flat = np.resize(a, a.shape[0] + a.shape[1] - 1)
            return ag.from_numpy(np.lib.stride_tricks.sliding_window_view(flat, a.shape[1]).copy()) if self.r.random() < 0.3 else ag.tensor(flat)[self.np.arange(a.shape[1])]
        if layout == "offset":
            raw = np.zeros(a.nbytes + 64, np.uint8)          # memory of NumPy's; the data begins anywhere and ends with it
            start = a.itemsize * self.r.randrange(0, 4)
            view = raw[start:start + a.nbytes].view(a.dtype).reshape(a.shape)
            view[...] = a
            with contextlib.suppress(Exception):
                return ag.from_numpy(view)
        return ag.tensor(a)

    def argument(self, name="", like=None):
        """An argument; mostly of the kind that a parameter of that name takes."""
        if self.r.random() < self.treachery:
            return self.treacherous()
        made = self.honest(name, like)
        if type(made) is list and self.treachery:
            self.lists = [*self.lists[-2:], made]
        if self.r.random() < self.treachery and isinstance(made, (int, float, tuple)) and not isinstance(made, bool):
            return tuple(Treacherous(v, self) if isinstance(v, int) else v for v in made) if isinstance(made, tuple) else Treacherous(made, self)
        return made

    def honest(self, name, like):
        ag, r = self.ag, self.r
        if r.random() < 0.2:
            return r.choice(WEIRD)
        if name in ("dim", "axis", "dims", "dim0", "dim1", "start_dim", "end_dim", "destination", "source", "axes"):
            return r.choice([0, 1, -1, 2, -2, (0,), (0, 1), (-1, 0), None, 5, (0, 1, 2)])
        if name in ("size", "shape", "sizes", "sizes_or_sections", "kernel_size", "output_size", "normalized_shape", "repeats", "shifts", "padding", "stride", "dilation", "pad", "indices_or_sections"):
            return r.choice([1, 2, 3, -1, 0, (2, 3), (3, 2), (6,), (-1,), (1, 1), (2, 3, 1), (0,), (2, 2), (1, 0, 2, 1), [1, 2]])
        if name in ("dtype", "out_dtype"):
            return r.choice([None, *(getattr(ag, d) for d in DTYPES), float, "float32"])
        if name in ("keepdim", "keepdims", "training", "inplace", "unbiased", "affine", "bias", "sorted", "largest", "descending", "retain_graph", "create_graph"):
            return r.choice([True, False])
        if name in ("index", "indices", "target", "input_ids", "mask", "condition"):
            return self.tensor(dtype=r.choice(["int64", "int64", "bool"]), shape=r.choice([None, like]))
        if name in ("tensors", "arrays", "inputs", "parameters", "params"):
            return [self.tensor(shape=r.choice([None, like])) for _ in range(r.randrange(4))]
        if name in ("reduction", "mode", "approximate", "reduce", "rounding_mode", "interpolation", "indexing"):
            return r.choice(["mean", "sum", "none", "reflect", "replicate", "circular", "constant", "nearest", "bilinear", "tanh", "floor", "trunc", "ij", "prod", "amax", None])
        if name in ("p", "alpha", "beta", "value", "eps", "weight_decay", "lr", "rtol", "atol", "correction", "q", "momentum"):
            return r.choice([0, 1, 2, 0.5, 0.9, -1.0, 3, float("inf"), float("nan"), 1e-8])
        if name in ("n", "k", "m", "diagonal", "offset", "start", "length", "num_classes", "steps", "end", "step", "chunks", "split_size", "groups", "order", "in_features", "out_features", "in_channels", "out_channels", "num_features", "num_embeddings", "embedding_dim", "minlength", "bins"):
            return r.choice([0, 1, 2, 3, 4, -1, 7, 100])
        if r.random() < 0.75:
            return self.tensor(shape=r.choice([None, like, like]))
        return r.choice([*WEIRD, self.np.ones((2, 3)), self.np.array(1.5), self.np.float32(2), self.np.arange(3)])


def squares(call):
    """A step that differentiates the squares of what `call` gives; it reaches nothing else, which a capture would look through."""
    def step(*inputs):
        outs = call(*inputs)
        outs = [o for o in (outs if isinstance(outs, (tuple, list)) else [outs]) if hasattr(o, "requires_grad")]
        total = [(o * o).sum() for o in outs if o.requires_grad]
        if total:
            sum(total).backward()
        return outs

    return step


class Worker:
    """One process: calls, one after the other, each written down before it is made."""

    def __init__(self, seed, seconds, log):
        import numpy as np
        import samples

        import autograd_cy as ag

        self.ag, self.np, self.samples = ag, np, samples
        self.seed, self.end, self.calls, self.failed = seed, time.time() + seconds, 0, 0
        self.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        self.h = Hostile(ag, np, seed)
        self.r = self.h.r
        signal.signal(signal.SIGALRM, self.too_long)
        faulthandler.register(signal.SIGUSR1)

    @staticmethod
    def too_long(*_):
        raise TimeoutError

    def said(self, value):
        if isinstance(value, self.ag.Tensor):
            return f"tensor{tuple(value.shape)}{str(value.dtype)[12:]} stride {value.stride()}{' grad' if value.requires_grad else ''}"
        if isinstance(value, (list, tuple)):
            return f"{type(value).__name__}[{', '.join(self.said(v) for v in value[:6])}]"
        if isinstance(value, slice):
            return f"slice({self.said(value.start)}, {self.said(value.stop)}, {self.said(value.step)})"
        if isinstance(value, Treacherous):
            return f"{type(value).__name__}({value.value})"
        try:
            return repr(value)[:80]
        except Exception:                    # of a layer whose options are no numbers
            return f"a {type(value).__name__}"

    def do(self, what, f, *args, **kwargs):
        """f(*args, **kwargs); None if it raises."""
        text = f"{what}({', '.join([*(self.said(a) for a in args), *(f'{k}={self.said(v)}' for k, v in kwargs.items())])})\n"
        os.ftruncate(self.log, os.pwrite(self.log, text.encode(), 0))
        self.calls += 1
        signal.setitimer(signal.ITIMER_REAL, 20)
        try:
            return f(*args, **kwargs)
        except Exception:                    # any exception is right
            self.failed += 1
            return None
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    # ---- what is done with results

    def tensors_of(self, value, depth=2):
        if isinstance(value, self.ag.Tensor):
            return [value]
        if isinstance(value, (list, tuple)) and depth:
            return [t for v in value for t in self.tensors_of(v, depth - 1)]
        return []

    def differentiate(self, what, value, leaves):
        """Backward once or twice of all outputs; numbers are read, so that memory is."""
        outs = self.tensors_of(value)
        for t in outs[:4]:
            if t.numel() < 1000:
                self.do(f"{what}: repr of", repr, t)
        outs = [t for t in outs if t.requires_grad and t.numel() < 100000]
        leaves = [t for t in leaves if t.requires_grad]
        if not outs or not leaves:
            return
        twice = self.r.random() < 0.4

        def run():
            seeds = [self.h.laid_out(self.np.ones(t.shape, str(t.dtype)[12:]), self.r.choice(LAYOUTS)) for t in outs]
            return self.ag.autograd.grad(outs, leaves, seeds, create_graph=twice, allow_unused=True)

        grads = self.do(f"{what}: gradient of", run)
        if twice and grads:
            total = [g for g in grads if g is not None and g.requires_grad]
            if total:
                self.do(f"{what}: second gradient of", lambda: self.ag.autograd.grad(sum((g * g).sum() for g in total), leaves, allow_unused=True))

    def leaves_of(self, args):
        return [t for t in self.tensors_of(list(args)) if t.is_leaf]

    # ---- the kinds of calls

    def sample(self, sample):
        """A sample in random layouts, dtypes and shapes; captured now and then."""
        r, h = self.r, self.h
        dtype = r.choice([*sample.dtypes, *sample.dtypes, *DTYPES])
        shapes = None
        if r.random() < 0.4:
            shapes = [r.choice(SHAPES)] * len(sample.inputs) if r.random() < 0.6 else [r.choice(SHAPES) for _ in sample.inputs]
        try:
            arrays = sample.arrays("float64", shapes)
        except Exception:
            return
        with self.np.errstate(all="ignore"):
            arrays = [a.astype(dtype) if a.dtype.kind == "f" else a for a in arrays]
        tensors = [h.laid_out(a, r.choice(LAYOUTS)) for a in arrays]
        for t in tensors:
            if t.is_floating_point() and r.random() < 0.8:
                t.requires_grad_(True)
        out = self.do(sample.name, sample.call, *tensors)
        self.differentiate(sample.name, out, self.leaves_of(tensors))
        if r.random() < 0.15:
            self.captured(sample, tensors)
        name = sample.op + "_"
        if tensors and hasattr(self.ag.Tensor, name) and r.random() < 0.3:
            own = tensors[0].detach()
            self.do(f"{sample.op}_", getattr(own, name), *tensors[1:])
            base = (tensors[0] * 1 if r.random() < 0.5 else tensors[0])
            self.do(f"{sample.op}_ recorded", getattr(base, name), *tensors[1:])

    def captured(self, sample, tensors):
        compiled = self.ag.compile(squares(sample.call))
        for _ in range(4):
            fresh = [t.detach().clone() if self.r.random() < 0.7 else t.detach() for t in tensors]
            fresh = [f.requires_grad_(t.requires_grad) for f, t in zip(fresh, tensors, strict=True)]
            self.do(f"captured {sample.name}", compiled, *fresh)

    def program(self):
        """A random program over the whole table."""
        import programs

        usable = [s for s in self.samples.SAMPLES if "float64" in s.dtypes]
        seed = self.r.randrange(1 << 30)
        leaves = [self.ag.tensor(v, dtype=self.ag.float64).requires_grad_(True) for v in programs.leaves_of(seed)]
        ran = self.do(f"program {seed}: ", programs.run, self.ag, programs.drawn(seed), leaves, usable)
        if ran:
            self.differentiate(f"program {seed}", ran.loss, leaves)

    def call(self, path, f, owner=None):
        """A public function or method with random arguments."""
        r, h = self.r, self.h
        like = r.choice(SHAPES)
        try:
            parameters = [p for p in inspect.signature(f).parameters.values() if p.name not in ("self", "cls")]
        except (TypeError, ValueError):
            parameters = []
        args, kwargs = [], {}
        for p in parameters:
            if p.kind == p.VAR_POSITIONAL:
                args += [h.argument(p.name, like) for _ in range(r.randrange(3))]
            elif p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
                if p.default is not p.empty and r.random() < 0.6:
                    break
                args.append(h.tensor(shape=like) if p.name in ("input", "x", "a", "other") and r.random() < 0.9 else h.argument(p.name, like))
        for p in parameters[len(args):]:
            if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD) and r.random() < 0.4:
                kwargs[p.name] = h.argument(p.name, like)
        if not parameters or r.random() < 0.1:
            args = [h.argument("", like) for _ in range(r.randrange(4))]
        if owner is not None and parameters and args and parameters[0].name == "input":
            args = args[1:]
        out = self.do(path, f, *args, **kwargs)
        self.differentiate(path, out, self.leaves_of([*args, *kwargs.values()]))
        return out

    def method(self, name):
        t = self.h.tensor()
        if name.endswith("_") and not name.startswith("_") and self.r.random() < 0.7:
            t = t * 1 if self.r.random() < 0.5 else t.detach()
        f = self.do(f"Tensor.{name} of", getattr, t, name)
        if callable(f):
            if name.startswith("__"):
                self.do(f"{self.said(t)}.{name}", f, *(self.h.argument("", tuple(t.shape)) for _ in range(self.r.randrange(3))))
            else:
                self.call(f"{self.said(t)}.{name}", f, owner=t)
            self.do("repr of", repr, t if t.numel() < 1000 else None)

    def key(self):
        """Reading and writing by a random key."""
        r, h = self.r, self.h
        t = h.tensor()

        def part():
            if r.random() < h.treachery:
                return h.treacherous()
            kind = r.random()
            if kind < 0.3:
                return r.choice([0, -1, 1, 5, -7, 1 << 40, -(1 << 63), None, Ellipsis, True, False])
            if kind < 0.6:
                return slice(*(r.choice([None, 0, 1, -1, 2, -3, 1 << 62, -(1 << 64)]) for _ in range(3)))
            if kind < 0.9:
                return h.tensor(dtype=r.choice(["int64", "int32", "uint8", "bool"]), shape=r.choice([tuple(t.shape), tuple(t.shape)[:1], (2,), (0,), None]))
            return r.choice([[0, 1], [-1], [], [True, False], self.np.array([0, 1]), (0, 1), "x", 1.5])

        key = tuple(part() for _ in range(r.randrange(1, 4))) if r.random() < 0.7 else part()
        out = self.do(f"getitem of {self.said(t)} by", t.__getitem__, key)
        self.differentiate("getitem", out, [t])
        target = t * 1 if t.is_floating_point() and r.random() < 0.7 else t.detach()
        value = r.choice([0.5, h.tensor(), h.tensor(shape=()), True, None, self.np.ones(3)])
        if r.random() < h.treachery:
            value = h.treacherous()
            h.recent.append(target)
        self.do(f"setitem of {self.said(target)} by", target.__setitem__, key, value)
        self.differentiate("setitem", target * 1, [t])

    def layer(self, name, cls):
        made = self.call(f"nn.{name}", cls)
        if made is None:
            return
        text = self.do(f"repr of nn.{name}", repr, made) or name
        for _ in range(3):
            args = [self.h.tensor(dtype=self.r.choice(["float32", "float32", "int64"])) for _ in range(self.r.choice([1, 1, 1, 2]))]
            out = self.do(text[:200], made, *args)
            self.differentiate(name, out, [*self.leaves_of(args), *getattr(made, "parameters", list)()])

    # ---- all of it

    def found(self):
        """(kind, path, function) of everything public."""
        ag = self.ag
        spaces = {"ag": ag, "nn.functional": ag.nn.functional}
        for name in ("linalg", "special", "fft", "autograd", "func", "tools", "random"):
            space = getattr(ag, name, None)
            if space is not None:
                spaces[name] = space
        spaces["nn.init"], spaces["nn.utils"] = ag.nn.init, ag.nn.utils
        for path, space in spaces.items():
            for name in sorted(getattr(space, "__all__", None) or dir(space)):
                f = getattr(space, name, None)
                if not name.startswith("_") and name not in NOT_CALLED and callable(f) and not inspect.isclass(f) and not inspect.ismodule(f):
                    yield "call", f"{path}.{name}", f
        skipped = {"__class__", "__init_subclass__", "__subclasshook__", "__new__", "__init__", "__getattribute__", "__setattr__", "__delattr__", "__reduce_ex__"}
        for name in sorted(dir(ag.Tensor)):
            if name not in skipped and name not in NOT_CALLED:
                yield "method", name, None
        for name in sorted(vars(ag.nn)):
            cls = getattr(ag.nn, name)
            if inspect.isclass(cls) and issubclass(cls, ag.nn.Module):
                yield "layer", name, cls

    def run(self):
        warnings.simplefilter("ignore")
        public = list(self.found())
        samples = list(self.samples.SAMPLES)
        rounds = 0
        while time.time() < self.end or not rounds:
            self.r.shuffle(samples)
            self.r.shuffle(public)
            self.h.treachery = 0.0 if rounds % 2 else 0.25
            for k, sample in enumerate(samples):
                self.sample(sample)
                self.key()
                if k % 4 == 0:
                    self.program()
                kind, path, f = public[k % len(public)]
                {"call": self.call, "layer": self.layer}[kind](path, f) if kind != "method" else self.method(path)
                if time.time() > self.end:
                    break
            for kind, path, f in public:
                if time.time() > self.end:
                    break
                for _ in range(4):
                    {"call": self.call, "layer": self.layer}[kind](path, f) if kind != "method" else self.method(path)
            rounds += 1
        print(f"process {self.seed}: {self.calls} calls ({self.failed} refused), {len(samples)} samples, {len(public)} names, {rounds} rounds")


def preloaded():
    """The libraries of the sanitizers, which have to be there before Python."""
    names = ("libasan.so", "libubsan.so")
    return " ".join(subprocess.run(["gcc", f"-print-file-name={n}"], capture_output=True, text=True, check=True).stdout.strip() for n in names)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--seconds", type=float, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        Worker(args.seed, args.seconds, args.worker).run()
        return 0
    here = os.path.dirname(os.path.abspath(__file__))
    options = "detect_leaks=0:halt_on_error=1:exitcode=66:allocator_may_return_null=1:max_allocation_size_mb=400:detect_stack_use_after_return=0"
    environment = os.environ | {
        "LD_PRELOAD": preloaded(), "PYTHONMALLOC": "malloc", "ASAN_OPTIONS": options, "PYTHONPATH": f"{os.path.abspath(args.folder)}:{here}",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1:exitcode=66", "OPENBLAS_NUM_THREADS": "1",
        "AUTOGRAD_CY_LEVEL": os.environ.get("AUTOGRAD_CY_LEVEL", "v3"),
    }   # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        running = []
        for seed in range(args.seed, args.seed + args.processes):
            log, report = os.path.join(folder, f"last{seed}"), open(os.path.join(folder, f"report{seed}"), "w+")      # noqa: SIM115
            command = [sys.executable, __file__, args.folder, "--seconds", str(args.seconds), "--seed", str(seed), "--worker", log]
            running.append((seed, log, report, subprocess.Popen(command, env=environment, stderr=report)))
        bad, end = 0, time.time() + args.seconds + 200
        for seed, log, report, process in running:
            try:
                status = process.wait(max(1, end - time.time()))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGUSR1)              # says where it hangs
                time.sleep(2)
                process.kill()
                status = process.wait()
            if status:
                bad += 1
                report.seek(0)
                with contextlib.suppress(OSError), open(log) as last:
                    print(f"process {seed} (--seed {seed} repeats it) ended with {status} in\n    {last.read()}")
                lines = report.read().splitlines()
                found = [k for k, line in enumerate(lines) if "ERROR: " in line or "runtime error: " in line or line.startswith("Fatal Python")]
                print("\n".join(lines[found[0] if found else -40:][:40]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
