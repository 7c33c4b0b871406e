"""Arguments whose __index__, __len__, __bool__ ... change the tensor that the call is about: refused, or right for what it is then.

Relies on the package only. tests/sanitize.py has the same of all functions, at random, under the sanitizers.
"""

import numpy as np
import pytest

import autograd_cy as ag

F = ag.nn.functional


class Treacherous:
    """A number that turns x into something smaller when it is read."""

    def __init__(self, x, value):
        self.x, self.value = x, value

    def betray(self):
        self.x.data = ag.zeros((), dtype=self.x.dtype)
        self.more = [ag.full((n,), -7.0) for n in (1, 4, 16, 64)]

    def __index__(self):
        self.betray()
        return self.value

    __int__ = __index__

    def __float__(self):
        self.betray()
        return float(self.value)

    def __bool__(self):
        self.betray()
        return bool(self.value)


class Sequence(Treacherous):
    def __len__(self):
        self.betray()
        return 2

    def __getitem__(self, k):
        self.betray()
        if k > 1:
            raise IndexError
        return self.value


N, S = Treacherous, Sequence
CALLS = [
    lambda x: x[N(x, 5)], lambda x: x[N(x, 5):], lambda x: x[:, N(x, 1):N(x, 3)], lambda x: x[[0, 1], N(x, 1):], lambda x: x[..., N(x, 3)],
    lambda x: x[N(x, 4):, [0, 1]], lambda x: x[[N(x, 5), 0]], lambda x: x[None, ..., N(x, 0):9:N(x, 2)],
    lambda x: x.__setitem__(N(x, 5), 1.0), lambda x: x.__setitem__((slice(None), slice(N(x, 1), None)), 1.0),
    lambda x: x.__setitem__(([0, 5], slice(N(x, 1), None)), 1.0), lambda x: x.__setitem__(0, [N(x, 1)] * 4),
    lambda x: x.__setitem__((slice(N(x, 4), None), [0, 1]), 2.0),
    lambda x: x.select(0, N(x, 5)), lambda x: x.narrow(N(x, 0), 4, 2), lambda x: x.narrow(0, N(x, 4), N(x, 2)), lambda x: x.unfold(0, N(x, 3), 1),
    lambda x: x.as_strided((2, 2), (4, 1), N(x, 3)), lambda x: x.as_strided(S(x, 2), (4, 1)), lambda x: x.diagonal(N(x, 1)),
    lambda x: x.transpose(N(x, 0), 1), lambda x: x.permute(N(x, 1), 0), lambda x: x.movedim(N(x, 0), 1), lambda x: x.squeeze(N(x, 0)),
    lambda x: x.reshape(N(x, 4), 6), lambda x: x.reshape(S(x, 4)), lambda x: x.expand(N(x, 2), 6, 4), lambda x: x.unflatten(1, S(x, 2)),
    lambda x: x.split(N(x, 2)), lambda x: x.split([N(x, 2), 4]), lambda x: x.split(S(x, 3)), lambda x: x.split_with_sizes(S(x, 2), 1), lambda x: x.chunk(N(x, 3)), lambda x: x.tensor_split([N(x, 3)]),
    lambda x: x.unbind(N(x, 1)), lambda x: x.flip(N(x, 1)), lambda x: x.roll(N(x, 1), N(x, 1)), lambda x: x.roll(S(x, 1), S(x, 1)),
    lambda x: ag.rot90(x, N(x, 1)), lambda x: F.pad(x, (N(x, 1), 1)), lambda x: F.pad(x, (1, 1), value=N(x, 3)), lambda x: x.tril(N(x, 1)),
    lambda x: x.repeat(N(x, 2), 1), lambda x: x.repeat_interleave(N(x, 2), 1), lambda x: x.diag_embed(N(x, 1)),
    lambda x: x.sum(N(x, 1)), lambda x: x.sum((0, N(x, 1))), lambda x: x.sum(1, N(x, 1)), lambda x: x.mean(1, keepdim=N(x, 1)),
    lambda x: x.max(N(x, 1)), lambda x: x.max(1, N(x, 1)), lambda x: x.std(1, correction=N(x, 1)), lambda x: x.norm(2, N(x, 1)),
    lambda x: x.softmax(N(x, 1)), lambda x: x.cumsum(N(x, 1)), lambda x: x.logsumexp(N(x, 1), N(x, 1)), lambda x: x.argmax(1, N(x, 1)),
    lambda x: x.sort(N(x, 1)), lambda x: x.sort(1, N(x, 1)), lambda x: x.topk(N(x, 2)), lambda x: x.topk(2, 1, N(x, 1)),
    lambda x: x.kthvalue(N(x, 2)), lambda x: x.median(1, N(x, 1)), lambda x: x.gather(N(x, 1), ag.zeros(6, 1, dtype=ag.int64)),
    lambda x: x.index_select(N(x, 0), ag.tensor([5])), lambda x: F.embedding(ag.tensor([5]), x, padding_idx=N(x, 5)),
    lambda x: ag.cat([x, x], N(x, 1)), lambda x: ag.stack([x, x], N(x, 1)), lambda x: ag.linalg.svd(x, N(x, 1)),
    lambda x: ag.linalg.matrix_rank(x, atol=N(x, 0)), lambda x: ag.linalg.matrix_rank(x, hermitian=N(x, 0)),
    lambda x: ag.linalg.pinv(x, rtol=N(x, 0)), lambda x: ag.linalg.lstsq(x, x, rcond=N(x, 0)), lambda x: ag.linalg.lstsq(x, x.clone(), rcond=N(x, 0)),
    lambda x: ag.lu_unpack(x, ag.ones(4, dtype=ag.int32), True, N(x, 1)),
    lambda x: ag.linalg.cholesky(x[:4] @ x[:4].T, upper=N(x, 1)), lambda x: ag.linalg.inv_ex(x, check_errors=N(x, 1)),
    lambda x: x.add_(N(x, 1)), lambda x: x.mul_(N(x, 2)), lambda x: x.fill_(N(x, 2)), lambda x: x.clamp_(N(x, 0), N(x, 1)), lambda x: x + N(x, 1),
    lambda x: ag.tensor([N(x, 1), x]), lambda x: ag.tensor(S(x, 1)), lambda x: ag.zeros(N(x, 2)), lambda x: x.new_zeros(S(x, 2)),
    lambda x: F.conv2d(x.view(1, 1, 6, 4), x[:2, :2].view(1, 1, 2, 2), stride=(N(x, 1), 1)), lambda x: F.max_pool1d(x, S(x, 2)),
    lambda x: F.max_pool2d(x.unsqueeze(0), 1, return_indices=N(x, 1)), lambda x: F.max_pool2d(x.view(1, 1, 6, 4), 2, ceil_mode=N(x, 1)),
    lambda x: F.adaptive_max_pool1d(x, 2, N(x, 1)), lambda x: F.avg_pool1d(x, 2, count_include_pad=N(x, 0)), lambda x: F.batch_norm(x, None, None, training=N(x, 1)),
    lambda x: F.instance_norm(x.view(1, 6, 4), use_input_stats=N(x, 1)), lambda x: F.interpolate(x.view(1, 6, 4), 9, mode="linear", align_corners=N(x, 1)),
    lambda x: F.layer_norm(x, (4,), eps=N(x, 1)), lambda x: F.dropout(x, N(x, 0)), lambda x: F.one_hot(x.long(), N(x, 30)),
    lambda x: F.interpolate(x.unsqueeze(0), N(x, 5)), lambda x: F.cross_entropy(x, ag.zeros(6, dtype=ag.int64), ignore_index=N(x, 3)),
    lambda x: x.size(N(x, 1)), lambda x: x.stride(N(x, 1)), lambda x: x.flatten(N(x, 0), N(x, 1)), lambda x: x.view(N(x, 4), 6),
]   # fmt: skip


@pytest.mark.parametrize("call", CALLS, ids=range(len(CALLS)))
def test_argument_that_changes_the_tensor(call):
    for grad in (False, True):
        x = ag.arange(24.0).reshape(6, 4).clone().requires_grad_(grad)
        with np.errstate(all="ignore"):
            try:
                made = call(x)
                for t in made if isinstance(made, (tuple, list)) else [made]:
                    if isinstance(t, ag.Tensor):
                        t.tolist()
                        if t.requires_grad:
                            ag.autograd.grad(t.sum(), x, allow_unused=True)
            except (RuntimeError, IndexError, TypeError, ValueError):
                pass
        x.tolist()


def test_what_is_refused():
    x = ag.zeros(6, 4)
    with pytest.raises(RuntimeError, match="sum: an argument changed the memory or the shape"):
        x.sum(N(x, 1))
    x = ag.zeros(6, 4)
    with pytest.raises(RuntimeError, match="index: an argument changed the memory or the shape"):
        x[N(x, 1):]


def test_lists_that_shrink_while_they_are_read():
    numbers = [1.0, 2.0]

    class Shrinks:
        def __float__(self):
            numbers.clear()
            return 1.0

        def __index__(self):
            numbers.clear()
            return 1

    numbers += [Shrinks()] * 50
    for read in (ag.tensor, lambda v: ag.zeros(9)[v], ag.zeros, lambda v: ag.zeros(3, 3).sum(v), lambda v: ag.zeros(3, 3).split(v)):
        numbers[:] = [1, 1, Shrinks(), *[1] * 50]
        with pytest.raises((RuntimeError, IndexError, TypeError, ValueError)):
            read(numbers)


def test_backward_after_an_exchange_of_memory():
    """The gradient has the shape that x had: it does not go into a tensor of another one."""
    for run in (lambda y, x: y.backward(), lambda y, x: ag.autograd.grad(y, x), lambda y, x: ag.autograd.grad(y, x, create_graph=True)):
        x = ag.ones(3, requires_grad=True)
        y = (x * 2).sum()
        x.data = ag.zeros(2, 1)
        with pytest.raises(ValueError, match=r"\(3,\).*exchanged.*\(2, 1\)"):
            run(y, x)
        assert x.grad is None
