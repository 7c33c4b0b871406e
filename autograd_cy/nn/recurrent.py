"""Recurrent layers: RNN, LSTM, GRU, and their cells.

Relies on Module, Parameter, init and functional.  Models rely on it.
A layer is a loop in Python over the steps of a sequence; `ag.compile` replays it without the loop.
"""

import math

from ..engine import creation
from ..engine.elementwise import relu, sigmoid, tanh
from ..engine.joins import cat, stack
from ..engine.products import linear
from . import functional as F
from . import init
from .module import Module
from .parameter import Parameter
from .utils.rnn import PackedSequence

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNBase", "RNNCell", "RNNCellBase"]

_GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 4, "GRU": 3}


def _step(mode, x, h, c, w, b):
    """(h, c) of the next step, from x (already multiplied by its weight) and the state."""
    g = linear(h, w, b)
    if mode == "RNN_TANH":
        return tanh(x + g), c
    if mode == "RNN_RELU":
        return relu(x + g), c
    if mode == "LSTM":
        i, f, n, o = (x + g).chunk(4, -1)
        c = sigmoid(f) * c + sigmoid(i) * tanh(n)
        return sigmoid(o) * tanh(c), c
    xr, xz, xn = x.chunk(3, -1)
    hr, hz, hn = g.chunk(3, -1)
    r, z = sigmoid(xr + hr), sigmoid(xz + hz)
    n = tanh(xn + r * hn)
    return n + z * (h - n), c


class RNNBase(Module):
    """What RNN, LSTM and GRU share: weights weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, ... (and _reverse), all drawn from
    uniform(-1 / sqrt(hidden_size), 1 / sqrt(hidden_size))."""

    def __init__(self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
                 dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0, device=None, dtype=None) -> None:
        super().__init__()
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        if isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError("dropout should be a number in range [0, 1] representing the probability of an element being zeroed")
        if hidden_size <= 0 or num_layers <= 0:
            raise ValueError(f"{'hidden_size' if hidden_size <= 0 else 'num_layers'} must be greater than zero")
        if proj_size < 0 or proj_size >= hidden_size:
            raise ValueError("proj_size should be a positive integer or zero to disable projections, and smaller than hidden_size")
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout, self.bidirectional = bias, batch_first, float(dropout), bidirectional
        self.proj_size = proj_size
        out, rows = proj_size or hidden_size, _GATES[mode] * hidden_size
        directions = 2 if bidirectional else 1
        for layer in range(num_layers):
            for suffix in ("", "_reverse")[:directions]:
                width = input_size if layer == 0 else out * directions
                shapes = {"weight_ih": (rows, width), "weight_hh": (rows, out)}
                if bias:
                    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
                if proj_size:
                    shapes |= {"weight_hr": (proj_size, hidden_size)}
                for name, shape in shapes.items():
                    setattr(self, f"{name}_l{layer}{suffix}", Parameter(creation.empty(shape, dtype=dtype, device=device)))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        bound = 1 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self) -> None:
        """Does nothing: PyTorch's scripts call it for the GPU."""

    def forward(self, input, hx=None):
        if isinstance(input, PackedSequence):
            return self._packed(input, hx)
        if input.ndim not in (2, 3):
            raise ValueError(f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.ndim}D instead")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.shape[-1]}")
        single = input.ndim == 2
        x = input.unsqueeze(1) if single else input.transpose(0, 1) if self.batch_first else input
        h0, c0 = self._start(x, x.shape[1], hx, single)
        x, h, c = self._layers(x, h0, c0)
        out = x.squeeze(1) if single else x.transpose(0, 1) if self.batch_first else x
        if c is None:
            return out, h.squeeze(1) if single else h
        return out, (h.squeeze(1), c.squeeze(1)) if single else (h, c)

    def _packed(self, packed, hx):
        """Of sequences of different lengths: the states that are returned are those at their ends."""
        sizes = packed.batch_sizes.tolist()

        def ordered(states, order):
            if order is None or states is None:
                return states
            return tuple(s.index_select(1, order) for s in states) if isinstance(states, tuple) else states.index_select(1, order)

        if packed.data.shape[-1] != self.input_size:
            raise RuntimeError(f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {packed.data.shape[-1]}")
        h0, c0 = self._start(packed.data, sizes[0], ordered(hx, packed.sorted_indices), False)
        x, h, c = self._layers(packed.data, h0, c0, sizes)
        return packed._replace(data=x), ordered(h if c is None else (h, c), packed.unsorted_indices)

    def _layers(self, x, h0, c0, sizes=None):
        """(outputs, last h, last c); sizes: how many sequences have a first, second ... element, where x is packed."""
        directions = 2 if self.bidirectional else 1
        hs, cs = [], []
        for layer in range(self.num_layers):
            if layer and self.dropout:
                x = F.dropout(x, self.dropout, self.training)
            parts = []
            for d in range(directions):
                k = layer * directions + d
                part, h, c = self._run(x, h0[k], None if c0 is None else c0[k], f"_l{layer}{'_reverse' * d}", d == 1, sizes)
                parts.append(part)
                hs.append(h)
                cs.append(c)
            x = parts[0] if directions == 1 else cat(parts, -1)
        return x, stack(hs), None if c0 is None else stack(cs)

    def _run(self, x, h, c, suffix, backwards, sizes):
        """One layer in one direction: (outputs of all steps, last state)."""
        w, b = getattr(self, f"weight_hh{suffix}"), getattr(self, f"bias_hh{suffix}") if self.bias else None
        inputs = linear(x, getattr(self, f"weight_ih{suffix}"), getattr(self, f"bias_ih{suffix}") if self.bias else None)
        inputs = inputs.unbind(0) if sizes is None else inputs.split(sizes)
        narrower = getattr(self, f"weight_hr{suffix}") if self.proj_size else None
        outputs, first, ended = [], (h, c), []
        for each in reversed(inputs) if backwards else inputs:
            n = len(each)
            if n < len(h):             # of packed sequences: those that begin later, or have ended
                ended.append([None if s is None else s[n:] for s in (h, c)])
                h, c = [None if s is None else s[:n] for s in (h, c)]
            elif n > len(h):
                h, c = [None if s is None else cat([s, f[len(s):n]]) for s, f in zip((h, c), first, strict=True)]
            h, c = _step(self.mode, each, h, c, w, b)
            if narrower is not None:
                h = linear(h, narrower)
            outputs.append(h)
        if sizes is None:
            return stack(outputs[::-1] if backwards else outputs), h, c
        if not backwards:
            h, c = [None if s is None else cat([s, *[e[k] for e in reversed(ended)]]) for k, s in enumerate((h, c))]
        return cat(outputs[::-1] if backwards else outputs), h, c

    def _start(self, x, n, hx, single):
        """(h, c) of (layers * directions, N, ...); c is None unless the mode is LSTM."""
        many = self.num_layers * (2 if self.bidirectional else 1)
        lstm = self.mode == "LSTM"
        shapes = [(many, n, self.proj_size or self.hidden_size), (many, n, self.hidden_size)][:1 + lstm]
        if x.shape[0] == 0:
            raise RuntimeError(f"{type(self).__name__}: Expected sequence length to be larger than 0")
        if hx is None:
            states = [creation.zeros(shape, dtype=x.dtype) for shape in shapes]
        else:
            states = [s.unsqueeze(1) if single else s for s in (hx if lstm else (hx,))]
            for state, shape in zip(states, shapes, strict=True):
                if state.shape != shape:
                    raise RuntimeError(f"Expected hidden size {shape}, got {list(state.shape)}")
        return states[0], states[1] if lstm else None

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        for name, usual in (("proj_size", 0), ("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout", 0),
                            ("bidirectional", False)):
            if getattr(self, name) != usual:
                text += f", {name}={getattr(self, name)}"
        return text


class RNN(RNNBase):
    """h = tanh(W_ih x + b_ih + W_hh h + b_hh) over sequences (L, N, input_size); returns (all outputs, last h)."""

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh", bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, device=None, dtype=None) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__("RNN_" + nonlinearity.upper(), input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
                         dtype=dtype, device=device)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Long short-term memory over sequences (L, N, input_size); returns (all outputs, (last h, last c)). Gates in the order i, f, g, o."""

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
                 dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0, device=None, dtype=None) -> None:
        super().__init__("LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size,
                         dtype=dtype, device=device)


class GRU(RNNBase):
    """Gated recurrent units over sequences (L, N, input_size); returns (all outputs, last h). Gates in the order r, z, n."""

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
                 dropout: float = 0.0, bidirectional: bool = False, device=None, dtype=None) -> None:
        super().__init__("GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, dtype=dtype, device=device)


class RNNCellBase(Module):
    """One step of a recurrent layer: weight_ih, weight_hh, bias_ih, bias_hh of num_chunks * hidden_size rows."""

    _mode: str

    def __init__(self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device=None, dtype=None) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = num_chunks * hidden_size
        for name, shape in (("weight_ih", (rows, input_size)), ("weight_hh", (rows, hidden_size)), ("bias_ih", (rows,)),
                            ("bias_hh", (rows,))):
            if bias or name.startswith("weight"):
                setattr(self, name, Parameter(creation.empty(shape, dtype=dtype, device=device)))
            else:
                self.register_parameter(name, None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def forward(self, input, hx=None):
        name = type(self).__name__
        if input.ndim not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.ndim}D instead")
        if input.shape[-1] != self.input_size:
            raise RuntimeError(f"{name}: input has inconsistent input_size: got {input.shape[-1]}, expected {self.input_size}")
        lstm = self._mode == "LSTM"
        shape = (*input.shape[:-1], self.hidden_size)
        states = [creation.zeros(shape, dtype=input.dtype)] * 2 if hx is None else list(hx) if lstm else [hx, None]
        for state in states[:1 + lstm]:
            if state.shape != shape:
                raise RuntimeError(f"{name}: hidden state of shape {list(state.shape)} does not fit an input of shape {list(input.shape)} "
                                   f"and hidden_size {self.hidden_size}")
        single = input.ndim == 1
        if single:
            input, states = input.unsqueeze(0), [s if s is None else s.unsqueeze(0) for s in states]
        h, c = _step(self._mode, linear(input, self.weight_ih, self.bias_ih), states[0], states[1], self.weight_hh, self.bias_hh)
        if single:
            h, c = h.squeeze(0), c.squeeze(0) if lstm else c
        return (h, c) if lstm else h

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if not self.bias:
            text += f", bias={self.bias}"
        return text


class RNNCell(RNNCellBase):
    """h = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device=None, dtype=None) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {nonlinearity}")
        super().__init__(input_size, hidden_size, bias, 1, dtype=dtype, device=device)
        self.nonlinearity, self._mode = nonlinearity, "RNN_" + nonlinearity.upper()

    def extra_repr(self) -> str:
        return super().extra_repr() + (f", nonlinearity={self.nonlinearity}" if self.nonlinearity != "tanh" else "")


class LSTMCell(RNNCellBase):
    """One step of LSTM: (h, c) from x and (h, c)."""

    _mode = "LSTM"

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device=None, dtype=None) -> None:
        super().__init__(input_size, hidden_size, bias, 4, dtype=dtype, device=device)


class GRUCell(RNNCellBase):
    """One step of GRU: h from x and h."""

    _mode = "GRU"

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device=None, dtype=None) -> None:
        super().__init__(input_size, hidden_size, bias, 3, dtype=dtype, device=device)
