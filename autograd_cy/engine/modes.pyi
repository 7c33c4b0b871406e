# Types of the grad modes.
#
# Relies on nothing. __init__.pyi, nn, optim and users' type checkers rely on it.

from collections.abc import Callable, Generator
from typing import Any, Self, TypeVar, overload

from typing_extensions import disjoint_base

_F = TypeVar("_F", bound=Callable[..., Any])

observing: Callable[[str, Any], object] | None

def set_observer(observer: Callable[[str, Any], object] | None) -> None: ...
def is_grad_enabled() -> bool: ...
def drive(generator: Generator[Any, Any, Any], mode: bool) -> Generator[Any, Any, Any]: ...

@disjoint_base
class GradMode:
    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...
    def __call__(self, function: _F) -> _F: ...

class no_grad(GradMode):
    @overload
    def __new__(cls, function: None = None) -> Self: ...
    @overload
    def __new__(cls, function: _F) -> _F: ...  # type: ignore[misc]

class enable_grad(GradMode):
    @overload
    def __new__(cls, function: None = None) -> Self: ...
    @overload
    def __new__(cls, function: _F) -> _F: ...  # type: ignore[misc]

class set_grad_enabled(GradMode):
    def __init__(self, mode: bool) -> None: ...
