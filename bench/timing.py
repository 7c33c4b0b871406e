"""Timing: rounds interleaved over what is compared, minima and medians, and the cost of one statement.

Relies on the standard library (and tqdm for a bar, if installed). Every benchmark relies on it.
"""

import gc
import statistics
import sys
import timeit
from time import perf_counter


def bar(items, description, enabled=True):
    """`items` behind a progress bar, drawn only on a terminal and only where tqdm is installed."""
    try:
        from tqdm import tqdm
    except ImportError:
        return items
    return tqdm(items, desc=description, leave=False, disable=not (enabled and sys.stderr.isatty()), file=sys.stderr)


def interleaved(names, rounds):
    """(round, name) pairs in which every round visits every name: slow spells of the machine hit all alike.

    Each round starts one name later than the one before, so that no name always follows the same neighbour.
    """
    names = list(names)
    for number in range(rounds):
        shift = number % len(names) if names else 0
        for name in names[shift:] + names[:shift]:
            yield number, name


def clocked(function, *args, **options):
    """Run `function(*args, **options)` once; return (seconds, result)."""
    start = perf_counter()
    result = function(*args, **options)
    return perf_counter() - start, result


def seconds(function, *args, **options):
    """As `clocked`, after a collection."""
    gc.collect()
    return clocked(function, *args, **options)


def spread(values):
    """Minimum and median of some timings."""
    return {"min": min(values), "median": statistics.median(values)}


class Statement:
    """One Python statement, run many times in a compiled loop.

    `names` become local variables, so that reading them costs what it does in a user's function.
    """

    TARGET = 2e-3   # seconds per measurement: long against the clock, short against the scheduler's slices

    def __init__(self, statement, names):
        load = "; ".join(f"{name} = _names[{name!r}]" for name in names) or "pass"
        self.timer = timeit.Timer(statement, setup=load, globals={"_names": names})
        self.timer.timeit(1)                       # the first call may import a module
        count, took = 1, self.timer.timeit(1)
        while took < self.TARGET / 2:
            count = max(2 * count, int(count * self.TARGET / max(took, 1e-7) / 2))
            took = self.timer.timeit(count)
        self.count = max(1, int(count * self.TARGET / took))

    def sample(self):
        """Nanoseconds of one run, in one measurement, the loop included."""
        return self.timer.timeit(self.count) / self.count * 1e9


def loop_overhead(rounds=7):
    """Nanoseconds that the measuring loop itself costs per iteration."""
    empty = Statement("pass", {})
    return min(empty.sample() for _ in range(rounds))
