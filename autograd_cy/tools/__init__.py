"""Tools beside the library proper: gradient checks.

Relies on the engine.  Tests and users who write their own operations rely on it.
"""

from .gradcheck import GradcheckError, gradcheck, gradgradcheck

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]
