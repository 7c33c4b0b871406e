"""The code in docs/*.md runs and prints what the pages say, and what they say is refused is refused in those words.

Relies on docs/ and the package. Blocks of one page run in order, in one namespace; a ```text block after code is what it prints.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import autograd_cy as ag
from autograd_cy.array.errors import CaptureError

DOCS = Path(__file__).resolve().parents[1] / "docs"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WITH_CODE = [path for path in sorted(DOCS.glob("*.md")) if "```python" in path.read_text()]


@pytest.mark.parametrize("path", WITH_CODE, ids=lambda path: path.name)
def test_blocks_run(path, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, printed = {"__name__": "__main__"}, ""
    for kind, text in BLOCK.findall(path.read_text()):
        if kind == "text":
            assert printed.split() == text.split()
        elif kind == "python":
            exec(compile(text, "demo.py", "exec"), names)
            printed = capsys.readouterr().out


def refusals():
    """(statement, beginning of the message) of the table in compile.md."""
    section = (DOCS / "compile.md").read_text().partition("## What is refused")[2].partition("\n\nOther messages")[0]
    return re.findall(r"^\| `(.+?)`[^|]* \| ([^|]+) \|", section, re.MULTILINE)


@pytest.mark.parametrize(("statement", "message"), refusals(), ids=lambda text: text)
def test_refusals(statement, message):
    names = {}
    exec("""if True:
        import random, time
        import numpy as np
        import autograd_cy as ag
        log, counts, rates = [], {"steps": 0}, iter([0.1, 0.2, 0.3])
        w = ag.ones(3, requires_grad=True)
        made_before = w * 2
        scheduler = ag.optim.lr_scheduler.StepLR(ag.optim.SGD([w], lr=0.1), 1)

        @ag.compile
        def step(x):
            loss = (x * w).sum()
            """ + statement + """
            return loss
        """, names)
    with pytest.raises(CaptureError) as caught:
        for _ in range(6):
            names["step"](ag.ones(3))
    assert str(caught.value).startswith(message)


def test_links():
    """Links between the pages lead somewhere."""
    for path in [*DOCS.glob("*.md"), *DOCS.parent.glob("*.md")]:
        for target in re.findall(r"\]\(([^):#]+)\)", path.read_text()):
            assert os.path.exists(path.parent / target), f"{path.name}: {target}"


@pytest.mark.skipif(not (DOCS.parent / "autograd_cy").is_dir(), reason="runs in a source tree only")
def test_reference(tmp_path):
    """The reference can be written, and has the rows and the graph's names."""
    subprocess.run([sys.executable, DOCS / "make_reference.py", tmp_path / "reference.md"], check=True)
    text = (tmp_path / "reference.md").read_text()
    assert "**softmax**" in text
    assert "**ag.compile(" in text
