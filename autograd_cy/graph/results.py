"""Results of many calls put together, and the bar that shows how far they are.

Relies on trees and on the engine's joins. compile and seeds rely on it.
"""

from autograd_cy.engine.creation import empty
from autograd_cy.engine.joins import cat, stack

from .trees import HOLE, flatten, unflatten


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
