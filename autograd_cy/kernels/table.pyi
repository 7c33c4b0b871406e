# Types of the choice of an instruction-set level.
#
# Relies on nothing. kernels/__init__.py relies on it.

def cpu_level() -> int: ...
