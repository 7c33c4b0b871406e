"""The optimiser updates against torch.optim's formulas in NumPy (and against torch itself, where it is installed).

Relies on raw.py. Nothing relies on it.
"""

import hashlib
import itertools

import numpy as np
import pytest
import raw
from raw import CODES, _probe, address

STEPS = 100
SIZES = (1, 7, 48, 1000)


def lerp(a, b, w):
    return a + w * (b - a) if w < 0.5 else b - (b - a) * (1 - w)


class SGD:
    """Ours and the reference: `state` of each, one step each."""

    options = [{"momentum": m, "dampening": d, "nesterov": n, "weight_decay": w, "maximize": x}
               for m, d, n, w, x in itertools.product((0, 0.9), (0, 0.1), (False, True), (0, 0.01), (False, True))
               if (not n or (m and not d)) and (m or not d)]

    def __init__(self, p, lr=0.05, **o):
        self.lr, self.o, self.step, self.buf = lr, o, 0, np.zeros_like(p)

    def ours(self, p, g):
        o = self.o
        self.step += 1
        _probe.sgd(CODES[p.dtype], p.size, address(p), address(g), address(self.buf) if o["momentum"] else 0, self.lr,
                   o["momentum"], o["dampening"], o["weight_decay"], o["nesterov"], o["maximize"], self.step == 1)

    def reference(self, p, g):
        o, t = self.o, p.dtype.type
        self.step += 1
        g = -g if o["maximize"] else g
        if o["weight_decay"]:
            g = g + t(o["weight_decay"]) * p
        if o["momentum"]:
            if self.step == 1:
                self.buf[:] = g
            else:
                self.buf[:] = self.buf * t(o["momentum"]) + t(1 - o["dampening"]) * g
            g = g + t(o["momentum"]) * self.buf if o["nesterov"] else self.buf
        p += t(-self.lr) * g

    def torch(self, torch, p):
        return torch.optim.SGD([p], lr=self.lr, foreach=False, **self.o)


class Adam:
    options = [{"amsgrad": a, "weight_decay": w, "decoupled": d, "maximize": x, "betas": b}
               for a, w, d, x, b in itertools.product((False, True), (0, 0.01), (False, True), (False, True),
                                                      ((0.9, 0.999), (0.3, 0.5)))]

    def __init__(self, p, lr=0.01, eps=1e-8, **o):
        self.lr, self.eps, self.o, self.step = lr, eps, o, 0
        self.m, self.v, self.vmax = np.zeros_like(p), np.zeros_like(p), np.zeros_like(p)

    def ours(self, p, g):
        o = self.o
        self.step += 1
        _probe.adam(CODES[p.dtype], p.size, address(p), address(g), address(self.m), address(self.v),
                    address(self.vmax) if o["amsgrad"] else 0, self.lr, *o["betas"], self.eps, o["weight_decay"], o["decoupled"],
                    o["maximize"], self.step)

    def reference(self, p, g):
        o, t = self.o, p.dtype.type
        (b1, b2), wd = o["betas"], o["weight_decay"]
        self.step += 1
        g = -g if o["maximize"] else g
        if wd and o["decoupled"]:
            p *= t(1 - self.lr * wd)
        elif wd:
            g = g + t(wd) * p
        w = t(1 - b1)
        self.m[:] = lerp(self.m, g, w)
        self.v[:] = self.v * t(b2) + t(1 - b2) * g * g
        v = self.v
        if o["amsgrad"]:
            self.vmax[:] = v = np.maximum(self.vmax, v)
        denom = np.sqrt(v) / t((1 - b2 ** self.step) ** 0.5) + t(self.eps)
        p += t(-self.lr / (1 - b1 ** self.step)) * self.m / denom

    def torch(self, torch, p):
        o = dict(self.o)
        kind = torch.optim.AdamW if o.pop("decoupled") else torch.optim.Adam
        return kind([p], lr=self.lr, eps=self.eps, foreach=False, fused=False, **o)


class RMSprop:
    options = [{"momentum": m, "centered": c, "weight_decay": w, "maximize": x, "alpha": a}
               for m, c, w, x, a in itertools.product((0, 0.9), (False, True), (0, 0.01), (False, True), (0.99, 0.4))]

    def __init__(self, p, lr=0.01, eps=1e-8, **o):
        self.lr, self.eps, self.o = lr, eps, o
        self.square, self.buf, self.avg = np.zeros_like(p), np.zeros_like(p), np.zeros_like(p)

    def ours(self, p, g):
        o = self.o
        _probe.rmsprop(CODES[p.dtype], p.size, address(p), address(g), address(self.square),
                       address(self.buf) if o["momentum"] else 0, address(self.avg) if o["centered"] else 0, self.lr, o["alpha"],
                       self.eps, o["weight_decay"], o["momentum"], o["maximize"])

    def reference(self, p, g):
        o, t = self.o, p.dtype.type
        g = -g if o["maximize"] else g
        if o["weight_decay"]:
            g = g + t(o["weight_decay"]) * p
        self.square[:] = self.square * t(o["alpha"]) + t(1 - o["alpha"]) * g * g
        avg = self.square
        if o["centered"]:
            self.avg[:] = lerp(self.avg, g, t(1 - o["alpha"]))
            avg = avg - self.avg * self.avg
        avg = np.sqrt(avg) + t(self.eps)
        if o["momentum"]:
            self.buf[:] = self.buf * t(o["momentum"]) + g / avg
            p += t(-self.lr) * self.buf
        else:
            p += t(-self.lr) * g / avg

    def torch(self, torch, p):
        return torch.optim.RMSprop([p], lr=self.lr, eps=self.eps, foreach=False, **self.o)


CASES = [(kind, o) for kind in (SGD, Adam, RMSprop) for o in kind.options]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("kind", "options"), CASES)
def test_equals_the_formula(kind, options, dtype):
    rng = np.random.default_rng(0)
    for n in SIZES:
        p = rng.normal(size=n).astype(dtype)
        q = p.copy()
        ours, theirs = kind(p, **options), kind(q, **options)
        for _ in range(STEPS):
            g = rng.normal(size=n).astype(dtype)
            ours.ours(p, g.copy())
            theirs.reference(q, g)
            if kind is Adam:          # Python's power and ours may round differently: start each step from the same values
                np.testing.assert_allclose(p, q, rtol=0, atol=np.finfo(dtype).eps * (0.02 + np.abs(q).max()))
                p[:] = q
            else:
                np.testing.assert_array_equal(p, q)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("kind", "options"), CASES)
def test_equals_torch(kind, options, dtype):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    p = rng.normal(size=100).astype(dtype)
    q = torch.tensor(p.copy(), requires_grad=True)
    ours = kind(p, **options)
    theirs = ours.torch(torch, q)
    scale = np.finfo(dtype).eps
    for i in range(STEPS):
        g = rng.normal(size=100).astype(dtype)
        ours.ours(p, g)
        q.grad = torch.tensor(g)
        theirs.step()
        # torch fuses multiply-adds: roundings differ, and centered RMSprop cancels, so that its first steps amplify them
        tol = (100 if options.get("centered") else 4) * scale * (i + 10) * ours.lr * 10 + 2 * scale
        np.testing.assert_allclose(p, q.detach().numpy(), rtol=tol, atol=tol)


def test_bias_corrections_far_out():
    for step in (1, 2, 3, 1000, 4097, 10 ** 6, 10 ** 9, 2 ** 40):
        for b1, b2 in ((0.9, 0.999), (0.0, 0.99999), (0.5, 0.9)):
            p, g = np.zeros(3), np.full(3, 0.5)
            m, v = np.full(3, 0.25), np.full(3, 0.125)
            _probe.adam(CODES[p.dtype], 3, *map(address, (p, g, m, v)), 0, 1.0, b1, b2, 0.0, 0.0, False, False, step)
            want = -m / (1 - b1 ** step) / (np.sqrt(v) / np.sqrt(1 - b2 ** step))
            np.testing.assert_allclose(p, want, rtol=2e-14 if b2 > 0.999 else 1e-15)


def digest():
    h = hashlib.sha256()
    for dtype in ("f4", "f8"):
        for kind, options in CASES:
            rng = np.random.default_rng(0)
            p = rng.normal(size=100).astype(dtype)
            o = kind(p, **options)
            for _ in range(5):
                o.ours(p, rng.normal(size=100).astype(dtype))
            h.update(p.tobytes())
    return h.hexdigest()


def test_same_bits_at_every_level():
    code = "import raw, test_update; print(test_update.digest())"
    assert {raw.at_level(level, code).strip() for level in raw.LEVELS} == {digest()}
