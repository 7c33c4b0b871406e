"""What PyTorch scripts say of devices before they compute anything: device, cuda.is_available(), backends, and settings for a CPU.

There is one device, the CPU; asking for another is an error where it is asked for, and every question about others says no.
Relies on nothing. methods.py (Tensor.device) and the package's front rely on it.
"""

from types import SimpleNamespace


class device(str):
    """The CPU, as "cpu" or device("cpu", 0): a string with `type` and `index`. Raises RuntimeError for any other device."""

    __slots__ = ()
    type, index = "cpu", None

    def __new__(cls, type="cpu", index=None):
        if str(type).partition(":")[0] != "cpu":
            raise RuntimeError(f"device: autograd_cy computes on the CPU only, got {str(type)!r}")
        return str.__new__(cls, "cpu")

    def __repr__(self):
        return "device(type='cpu')"


def _no(*args, **kwargs):
    """There is no such device."""
    return False


def _nothing(*args, **kwargs):
    """Nothing to do on a CPU."""


def _accelerator():
    return SimpleNamespace(is_available=_no, device_count=lambda: 0, synchronize=_nothing, empty_cache=_nothing, manual_seed=_nothing,
                           manual_seed_all=_nothing)


CPU = device()
cuda, mps, accelerator = _accelerator(), _accelerator(), _accelerator()
accelerator.current_accelerator = lambda *args, **kwargs: None
backends = SimpleNamespace(
    cudnn=SimpleNamespace(is_available=_no, deterministic=True, benchmark=False, enabled=False),
    mps=SimpleNamespace(is_available=_no, is_built=_no), cuda=SimpleNamespace(is_built=_no, matmul=SimpleNamespace(allow_tf32=False)),
    mkldnn=SimpleNamespace(is_available=_no), openmp=SimpleNamespace(is_available=_no))


def set_default_device(device):
    """Accept "cpu"; RuntimeError for any other device."""
    if device is not None:
        globals()["device"](device)


def get_default_device():
    """The CPU."""
    return CPU


def use_deterministic_algorithms(mode, *, warn_only=False):
    """Accepted: every operation is deterministic anyway."""


def set_float32_matmul_precision(precision):
    """Accepted: products of float32 are computed in float32, the "highest" precision. Raises RuntimeError for unknown names."""
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(f"set_float32_matmul_precision: expected 'highest', 'high' or 'medium', got {precision!r}")


def set_flush_denormal(mode):
    """Returns False: subnormal numbers remain what they are."""
    return False


def get_num_interop_threads():
    """1: operations run one after another."""
    return 1


def set_num_interop_threads(n):
    """Accepted: operations run one after another, whatever the number. Raises RuntimeError for less than 1."""
    if n < 1:
        raise RuntimeError(f"set_num_interop_threads: expected a positive number of threads, got {n}")
