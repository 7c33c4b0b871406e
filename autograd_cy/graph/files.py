"""Programs as text (JSON) and back.

Relies on program.py and on storages. Program.to_json relies on it.
"""

import base64
import json

import numpy as np

from autograd_cy.engine.creation import tensor

from .program import EXTERNAL, Buffer, Instruction, Program, View
from .trees import HOLE

VERSION = 2


def to_json(program: Program) -> str:
    """Text from which `from_json` makes a program that computes the same, in any process."""
    for instruction in program.instructions:
        if instruction.extra is not None and instruction.kernel != "group":
            raise TypeError(f"a program with {instruction.name}() can't be saved: it reads objects of this process")
    buffers = []
    for b in program.buffers:
        content = bytes(memoryview(b.owner)) if b.kind == EXTERNAL and b.owner is not None else b.content
        buffers.append([b.id, b.kind, b.nbytes, b.name, None if content is None else base64.b64encode(content).decode()])
    return json.dumps({"version": VERSION, "title": program.title, "buffers": buffers,
                       "instructions": [_instruction(i) for i in program.instructions], "inputs": program.inputs,
                       "outputs": program.outputs, "gradients": program.gradients, "pinned": sorted(program.pinned),
                       "tree": _tree(program.tree)})


def _instruction(i):
    parts = [_instruction(part) for part in i.extra] if i.kernel == "group" else None
    return [i.kernel, i.name, i.operands, i.roles, i.attrs, [number.hex() for number in map(float, i.numbers)], i.line, parts]


def from_json(text: str) -> Program:
    """The Program that `to_json` described; outside memory is new, with the contents of then."""
    data = json.loads(text)
    if data.get("version") != VERSION:
        raise ValueError(f"the text describes version {data.get('version')} of programs; this is version {VERSION}")
    buffers = []
    for id, kind, nbytes, name, content in data["buffers"]:
        content = None if content is None else base64.b64decode(content)
        owner = None
        if kind == EXTERNAL and content is not None:
            owner = tensor(np.frombuffer(content, np.uint8)).untyped_storage()
            content = None
        buffers.append(Buffer(id, kind, nbytes, name, content, owner))
    return Program(tuple(buffers), tuple(map(_to_instruction, data["instructions"])), tuple(map(_to_view, data["inputs"])),
                   tuple(map(_to_view, data["outputs"])), tuple((name, _to_view(v)) for name, v in data["gradients"]),
                   frozenset(data["pinned"]), data["title"], _to_tree(data["tree"]))


def _tree(tree):
    """How the outputs make up the result; named tuples become tuples, other values than plain ones None."""
    if tree is None or tree is HOLE:
        return tree and "tensor"
    if tree[0] is None:
        return ["value", tree[1] if isinstance(tree[1], (bool, int, float, str)) else None]
    if len(tree) == 3:
        return ["dict", list(tree[1]), [_tree(part) for part in tree[2]]]
    return ["list" if issubclass(tree[0], list) else "tuple", [_tree(part) for part in tree[1]]]


def _to_tree(tree):
    if tree is None or tree == "tensor":
        return tree and HOLE
    if tree[0] == "value":
        return None, tree[1], type(tree[1])
    if tree[0] == "dict":
        return dict, tuple(tree[1]), tuple(map(_to_tree, tree[2]))
    return {"list": list, "tuple": tuple}[tree[0]], tuple(map(_to_tree, tree[1]))


def _to_view(v):
    return None if v is None else View(v[0], v[1], v[2], tuple(v[3]), tuple(v[4]))


def _to_instruction(i):
    kernel, name, operands, roles, attrs, numbers, line, parts = i
    return Instruction(kernel, name, tuple(map(_to_view, operands)), roles, tuple(attrs), tuple(map(float.fromhex, numbers)),
                       None if line is None else tuple(line), None if parts is None else tuple(map(_to_instruction, parts)))
