"""einsum against NumPy and PyTorch: random equations with every part of the syntax, their gradients, errors, the order of products.

Relies on PyTorch for what is marked oracle; nothing relies on it.
"""

import random

import numpy as np
import pytest

import autograd_cy as ag
from autograd_cy.engine.einsum import plan


def random_case(r, rng):
    """An equation and its operands: repeated letters, sizes of 1 and 0, ellipses, any order of dimensions in memory."""
    letters = r.sample("abcdefXY", r.randint(1, 6))
    size = {c: r.choice([0, 1, 2, 3]) if r.random() < 0.15 else r.choice([2, 3, 4]) for c in letters}
    dots = [r.choice([1, 2, 3]) for _ in range(r.randint(0, 2))]
    count, use_dots = r.choice([1, 2, 2, 2, 3, 3, 4, 5, 7]), r.random() < 0.3
    terms, arrays = [], []
    for _ in range(count):
        term = [r.choice(letters) for _ in range(r.randint(0, 3 if count > 3 else 4))]
        if r.random() < 0.7:
            term = list(dict.fromkeys(term))
        shape = [1 if r.random() < 0.06 and term.count(c) == 1 else size[c] for c in term]
        if use_dots and r.random() < 0.8:
            at, own = r.randint(0, len(term)), dots[r.randint(0, len(dots)) :]
            term[at:at], shape[at:at] = ["..."], [1 if r.random() < 0.3 else n for n in own]
        x = rng.normal(size=shape)
        if r.random() < 0.4 and x.ndim > 1:
            order = r.sample(range(x.ndim), x.ndim)
            x = np.ascontiguousarray(x.transpose(order)).transpose(np.argsort(order))
        elif x.ndim and r.random() < 0.2:
            x = np.ascontiguousarray(x[..., ::-1])[..., ::-1]
        terms.append(term)
        arrays.append(x)
    equation = ",".join("".join(t) for t in terms)
    if r.random() < 0.7:
        seen = [c for c in dict.fromkeys(c for t in terms for c in t) if c != "..."]
        output = r.sample(seen, r.randint(0, len(seen)))
        if any("..." in t for t in terms):
            output.insert(r.randint(0, len(output)), "...")
        equation += "->" + "".join(output)
    if r.random() < 0.05:
        equation = equation.replace(",", " , ").replace("->", " -> ")
    return equation, arrays


@pytest.mark.oracle
@pytest.mark.parametrize("seed", range(10))
def test_random_equations(seed):
    torch = pytest.importorskip("torch")
    r, rng = random.Random(seed), np.random.default_rng(seed)
    for _ in range(100):
        equation, arrays = random_case(r, rng)
        theirs = [torch.tensor(x.copy(), requires_grad=True) for x in arrays]
        ours = [ag.from_numpy(x).requires_grad_() for x in arrays]
        expected = torch.einsum(equation, *theirs)
        result = ag.einsum(equation, *ours)
        np.testing.assert_allclose(result.detach().numpy(), expected.detach().numpy(), 1e-10, 1e-10, err_msg=equation)
        weights = rng.normal(size=result.shape)
        gradients = ag.autograd.grad((result * ag.tensor(weights)).sum(), ours, materialize_grads=True)
        for g, h in zip(gradients, torch.autograd.grad((expected * torch.tensor(weights)).sum(), theirs), strict=True):
            np.testing.assert_allclose(g.numpy(), h.numpy(), 1e-9, 1e-9, err_msg=equation)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk", [(2, 3), (3, 4)]),
        ("ij,jk->ki", [(2, 3), (3, 4)]),
        ("ii", [(3, 3)]),
        ("ii->i", [(3, 3)]),
        ("iij->ji", [(3, 3, 2)]),
        ("...ij,...jk->...ik", [(2, 2, 3), (3, 2)]),
        ("i...->...", [(2, 3, 4)]),
        ("ba", [(2, 3)]),
        ("i,j,k->kji", [(2,), (3,), (4,)]),
        ("bij,bkj->bik", [(2, 3, 4), (2, 5, 4)]),
        (",ij->ij", [(), (2, 3)]),
        ("ijk,ijk->", [(2, 3, 4), (2, 3, 4)]),
        ("ab,bc,cd,de->ae", [(2, 9), (9, 3), (3, 8), (8, 2)]),
        ("ij,j->i", [(0, 3), (3,)]),
        ("ij,jk->ik", [(2, 0), (0, 3)]),
    ],
)
def test_numpy_agrees(equation, shapes):
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=s) for s in shapes]
    result = ag.einsum(equation, *map(ag.tensor, arrays))
    np.testing.assert_allclose(result.numpy(), np.einsum(equation, *arrays), 1e-12, 1e-12)


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
def test_integers_keep_their_dtype(dtype):
    a = np.full((2, 3), 100, dtype)
    for equation in ("ij,ij->i", "ij,ij->", "ij,kj->ik", "ij,ij->ij"):
        result = ag.einsum(equation, ag.tensor(a), ag.tensor(a)).numpy()
        np.testing.assert_array_equal(result, np.einsum(equation, a, a))
        assert result.dtype == dtype, equation


def test_lists_of_subscripts():
    a, b = ag.rand(2, 3), ag.rand(3, 4)
    assert ag.allclose(ag.einsum(a, [0, 1], b, [1, 2], [0, 2]), a @ b)
    assert ag.allclose(ag.einsum(a, [0, 1], b, [1, 2]), a @ b)
    assert ag.allclose(ag.einsum(a, [..., 1], b, [1, 2], [..., 2]), a @ b)
    assert ag.allclose(ag.einsum("ij,jk", [a, b]), a @ b)


@pytest.mark.parametrize(
    ("equation", "shapes", "words"),
    [
        ("ij,jk->il", [(2, 3), (3, 4)], ["l", "output"]),
        ("ij,jk->ii", [(2, 3), (3, 4)], ["more than once"]),
        ("ij,jk", [(2, 3), (4, 4)], ["j", "3", "4"]),
        ("ijk", [(2, 3)], ["3", r"\(2, 3\)"]),
        ("i", [(2, 3)], ["ellipsis", r"\(2, 3\)"]),
        ("ij,jk", [(2, 3)], ["2 operands", "1"]),
        ("i1", [(2, 3)], ["'1'"]),
        ("......", [(2, 3)], ["twice"]),
        ("ii", [(2, 3)], ["broadcast", "2", "3"]),
    ],
)
def test_errors(equation, shapes, words):
    for word in words:
        with pytest.raises(ValueError, match=word) as caught:
            ag.einsum(equation, *(ag.zeros(*s) for s in shapes))
        assert "einsum" in str(caught.value)
    with pytest.raises(TypeError, match="einsum"):
        ag.einsum("i", [1.0])


def test_the_cheapest_order():
    """A vector goes first, wherever it stands."""
    assert [(first, second) for function, first, second, _ in plan("ab,bc,c->a", (50, 60), (60, 70), (70,)) if function is ag.matmul][0] != (0, 1)
    assert [step[:3] for step in plan("ij,jk->ik", (2, 3), (3, 4))] == [(ag.matmul, 0, 1)]


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [("ij,kj->ik", ((2, 3), (4, 3))), ("ji,jk->ki", ((3, 2), (3, 4))), ("ij,kj->ki", ((2, 3), (4, 3)))],
)
def test_no_copies_where_views_serve(equation, shapes):
    """Each product of views is one matrix product."""
    assert {step[0].__name__ for step in plan(equation, *shapes)} <= {"swap_axes", "matmul"}
