# Types of the choice of an instruction-set level, and of the table of routines.
#
# Relies on nothing. kernels/__init__.py, engine/routines and graph/ rely on it.

from collections.abc import Callable

NUMBERS: dict[str, int]
ERRORS: dict[int, Callable[..., BaseException]]

def cpu_level() -> int: ...
def routine_number(name: str) -> int: ...
def routine_error(number: int, status: int, arrays: list[tuple[object, ...] | None], ints: tuple[int, ...]) -> BaseException: ...
