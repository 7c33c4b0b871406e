# Types of the base of Module in C.
#
# Relies on nothing. calling.py and module.py rely on it.

from typing_extensions import disjoint_base

@disjoint_base
class Callable: ...

def call_directly(cls: type) -> None: ...
