"""Many runs of a step, their results put together, and the bar that shows how far they are.

Relies on trees, replay and on the engine's joins. compile and seeds rely on it.
"""

import functools
import time

from autograd_cy.engine.creation import empty
from autograd_cy.engine.joins import cat, stack

from .replay import bind_gradients, clear_gradients, deliver_gradients, prepare_gradients
from .trees import HOLE, flatten, unflatten

SLICE = 0.05              # seconds between looks at signals (Ctrl-C) in a long repeat


def copies(tree):
    """The same structure with copies of its tensors, without their graph."""
    tensors, description = flatten(tree)
    return unflatten(description, [t.detach().clone() for t in tensors])


def stacked(results, times):
    """Results of equal structure, stacked."""
    if not results:
        return empty(0)
    flat = [flatten(result) for result in results]
    if flat[0][1] is None or not flat[0][0]:
        return None
    return unflatten(flat[0][1], [stack([tensors[k].detach() for tensors, _ in flat]) for k in range(len(flat[0][0]))])


def joined(tree, before, stacks):
    """Results of the first calls, then those of the replays."""
    firsts = flatten(stacked(before, len(before)))[0]
    return unflatten(tree, [cat([first, rest]) for first, rest in zip(firsts, stacks, strict=True)]) if tree is not HOLE \
        else cat([firsts[0], stacks[0]])


def bar_of(total, progress):
    """A function that moves a progress bar to a number of steps."""
    if not progress:
        return lambda done: None
    try:
        from tqdm import tqdm
    except ImportError:
        return lambda done: None
    shown = tqdm(total=total, unit="step")

    def move(done):
        shown.update(done - shown.n)
        if shown.total is not None and done >= shown.total:
            shown.close()
    return move


def run_many(entry, instance, updates, leaves, kept, times, tensors, progress=None):
    """`times` runs of a step on one instance; flat results stacked. What is interrupted ends after a whole step."""
    machine = entry.machine
    instance.bind_inputs(tensors)
    if updates:
        instance.refresh(updates)
    for i in entry.own_results:
        instance.fresh(i, times)
    bind_gradients(instance, kept)
    prepare_gradients(instance, leaves)
    stacks = [instance.tensor(view, (times,), machine.buffers[machine.index[view.buffer]].nbytes) for view in entry.outputs]
    done, size, failed = 0, min(times, 16), True
    try:
        while done < times:
            size, start = min(size, times - done), time.perf_counter()
            instance.run(size, entry.own_results)
            done += size
            if progress is not None:
                progress(done)
            size = max(1, min(size * 8, int(size * SLICE / max(time.perf_counter() - start, 1e-9))))
        failed = False
    except KeyboardInterrupt:
        failed = False
        raise
    finally:
        for i in entry.own_results:
            instance.fresh(i)
        (clear_gradients if failed else functools.partial(deliver_gradients, instance))(leaves)
    return stacks
