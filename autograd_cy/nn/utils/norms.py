"""Weights that are computed before every call, from other parameters: weight_norm and spectral_norm (torch.nn.utils).

Relies on Module (its forward pre-hooks). Scripts that train GANs and sequence models rely on it.
"""

from autograd_cy.engine.modes import no_grad
from autograd_cy.engine.generators import randn

from ..functional import normalize
from ..parameter import Parameter


class _Computed:
    """The forward pre-hook that sets an attribute of a module, in place of a parameter of that name."""

    def __init__(self, name):
        self.name = name

    def __call__(self, module, _args):
        setattr(module, self.name, self.compute(module))

    @classmethod
    def found(cls, module, name):
        """The number of this hook on a module, or None."""
        hooks = module._hooks.forward_pre if module._hooks is not None else {}
        return next((key for key, (hook, *_) in hooks.items() if isinstance(hook, cls) and hook.name == name), None)

    @classmethod
    def attach(cls, module, name, *options):
        if cls.found(module, name) is not None:
            raise RuntimeError(f"Cannot register two {cls.words} hooks on the same parameter {name}")
        self = cls(name, *options)
        weight = getattr(module, name)
        delattr(module, name)
        self.begin(module, weight)
        module.register_forward_pre_hook(self)
        return module

    @classmethod
    def detach(cls, module, name):
        key = cls.found(module, name)
        if key is None:
            raise ValueError(f"{cls.words} of '{name}' not found in {module}")
        weight = module._hooks.forward_pre.pop(key)[0].compute(module, False).detach()
        for suffix in ("", *cls.suffixes):
            delattr(module, name + suffix)
        setattr(module, name, Parameter(weight.clone()))
        return module


class _WeightNorm(_Computed):
    words, suffixes = "weight_norm", ("_g", "_v")

    def __init__(self, name, dim):
        super().__init__(name)
        self.dim = dim

    def norm(self, v):
        return v.norm() if self.dim is None else v.norm(dim=[k for k in range(v.ndim) if k != self.dim % v.ndim], keepdim=True)

    def begin(self, module, weight):
        setattr(module, self.name + "_g", Parameter(self.norm(weight).detach()))
        setattr(module, self.name + "_v", Parameter(weight.detach()))
        setattr(module, self.name, self.compute(module))

    def compute(self, module, _training=True):
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        return v * (g / self.norm(v))


class _SpectralNorm(_Computed):
    words, suffixes = "spectral_norm", ("_orig", "_u", "_v")

    def __init__(self, name, iterations, eps, dim):
        super().__init__(name)
        self.iterations, self.eps, self.dim = iterations, eps, dim

    def matrix(self, weight):
        return weight.movedim(self.dim, 0).flatten(1)

    def begin(self, module, weight):
        setattr(module, self.name + "_orig", Parameter(weight.detach()))
        setattr(module, self.name, weight.detach())
        for suffix, size in zip(("_u", "_v"), self.matrix(weight).shape, strict=True):
            module.register_buffer(self.name + suffix, normalize(randn(size, dtype=weight.dtype), dim=0, eps=self.eps))

    def compute(self, module, training=None):
        weight, u, v = (getattr(module, self.name + suffix) for suffix in self.suffixes)
        matrix = self.matrix(weight)
        if module.training if training is None else training:
            with no_grad():
                for _ in range(self.iterations):
                    v.copy_(normalize(matrix.t() @ u, dim=0, eps=self.eps))
                    u.copy_(normalize(matrix @ v, dim=0, eps=self.eps))
            u, v = u.clone(), v.clone()                # later calls change the buffers
        return weight / (u @ (matrix @ v))


def weight_norm(module, name: str = "weight", dim: int | None = 0):
    """Let a parameter be g * v / ||v||, of the parameters name_g (the norms over all dimensions but dim; None: one norm) and name_v."""
    return _WeightNorm.attach(module, name, dim)


def remove_weight_norm(module, name: str = "weight"):
    """Undo weight_norm: the weight as it is becomes a parameter again. ValueError where there is none."""
    return _WeightNorm.detach(module, name)


def spectral_norm(module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None):
    """Let a parameter be W / s, of the parameter name_orig = W and its largest singular value s as a matrix with the rows `dim`.

    Each call in training refines name_u and name_v, whose s = u^T W v is, by power iterations. dim: 1 for transposed convolutions.
    """
    if n_power_iterations <= 0:
        raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
    if dim is None:
        dim = int(type(module).__name__.startswith("ConvTranspose"))
    return _SpectralNorm.attach(module, name, n_power_iterations, eps, dim)


def remove_spectral_norm(module, name: str = "weight"):
    """Undo spectral_norm: the weight as it is becomes a parameter again. ValueError where there is none."""
    return _SpectralNorm.detach(module, name)
