# Types of the base of Module in C.
#
# Relies on nothing. calling.py and module.py rely on it.

class Callable: ...

def call_directly(cls: type) -> None: ...
