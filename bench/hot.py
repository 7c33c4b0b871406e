"""Finds the compiled functions that ordinary small calls go through, and writes their names to hot_functions.txt, by which rewriting.py
chooses what is compiled for speed and what for size. `make hot` builds what this needs, without inlining, and runs it.

Relies on valgrind (callgrind counts the calls of each function) and on rewriting.py (how a function's name is found in its C name).
Run as `python -m bench.hot` with that build on the path; `python -m bench.hot N` is the workload itself, each statement N times.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FEW, MANY = 2, 12        # how often each statement runs; what does not run more often with it is set-up

TENSORS = """
x = (ag.rand(4, 4) + .1).requires_grad_(); y = ag.rand(4, 4).requires_grad_(); z = ag.rand(3, 4, 5).requires_grad_()
a = ag.rand(4, 4) + .1; v = ag.rand(8).requires_grad_(); b4 = ag.rand(4); c = ag.rand(4, 1); d = a.t(); s = ag.tensor(2.0); w = ag.ones(1)
i = ag.tensor([2, 0, 1]); I = ag.tensor([[0, 1, 2, 3]]); classes = ag.tensor([0, 1, 2, 3]); i64 = ag.arange(16).reshape(4, 4)
cond = a > .5; m = (ag.rand(3, 3) + ag.eye(3) * 3).requires_grad_(); spd = (m @ m.t()).detach().requires_grad_()
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2), nn.Sigmoid())
mse, cross_entropy, bce = nn.MSELoss(), nn.CrossEntropyLoss(), nn.BCEWithLogitsLoss()
optimizers = [optim.SGD(net.parameters(), lr=.1), optim.SGD(net.parameters(), lr=.1, momentum=.9), optim.Adam(net.parameters()),
              optim.AdamW(net.parameters()), optim.RMSprop(net.parameters())]
target = ag.rand(4, 2)
def train():
    for optimizer in optimizers:
        optimizer.zero_grad()
        loss = mse(net(a), target) + cross_entropy(x, classes) + bce(x, a)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.)
        optimizer.step()
        loss.item()
def step(p, q):
    optimizers[2].zero_grad()
    loss = F.mse_loss(net(p), q)
    loss.backward()
    optimizers[2].step()
    return loss
replayed = ag.compile(step)
for _ in range(4): replayed(a, target)
function = ag.compile(lambda p: (p.tanh() * p).sum())
for _ in range(4): function(a)
def recursive():
    (x * y).sum().backward(engine="recursive")
def without_grad():
    with ag.no_grad():
        return x * y + a
"""
# What ordinary scripts call on small tensors; what has a gradient is differentiated, too.
STATEMENTS = """
x*2|2*x|x+1|1-x|x/2|2/x|x**2|x**3.0|-x|x>0|x==y|x*s|x+b4|x*c|x*d|x*y|x-y|x/y|i64+1|i64*i64|x+a*2|x**a|x%2|a//2|abs(x)|x@a|~cond|cond&cond
a.add_(1)|a.mul_(1.0)|a.sub_(0.)|a.div_(1.)|a.add_(a)|a.sub_(b4)|a.clamp_(0,1)|a.copy_(d)|a.fill_(1.)|a.zero_()|a.__iadd__(0.1)|x.data
ag.where(cond,x,a)|ag.where(cond,x,0.)|x.masked_fill(cond,0.)|x.clamp(0.2,0.8)|x.clamp(min=0)|ag.lerp(x,a,0.3)|ag.addcmul(x,a,a)
ag.maximum(x,a)
x.exp()|ag.exp(x)|x.log()|x.sqrt()|x.sigmoid()|x.tanh()|x.relu()|x.abs()|x.sin()|x.square()|x.pow(2)|x.reciprocal()|x.erf()|x.floor()
x.sign()
F.relu(x)|F.leaky_relu(x)|F.elu(x)|F.gelu(x)|F.silu(x)|F.softplus(x)|F.hardtanh(x)|F.logsigmoid(x)|F.prelu(x,w)|ag.logaddexp(x,a)
ag.nan_to_num(x)
x.float()|x.double()|x.long()|x.detach()|x.clone()|x.contiguous()|x.to(ag.float64)|x.is_contiguous()|s.item()|float(s)
x.tolist()
x.reshape(16)|x.reshape(2,-1)|x.view(2,8)|x.permute(1,0)|x.t()|x.T|x.transpose(0,1)|x.flatten()|x.unsqueeze(0)|x.squeeze()|x.expand(4,4)
x.narrow(0,1,2)
x.select(0,1)|x.unbind(0)|x.split(2)|x.chunk(2)|x.diagonal()|x.movedim(0,1)|v.unfold(0,3,1)|x.flip(0)|x.roll(1,0)|x.repeat(2,1)
ag.cat([x,a])|ag.stack([x,a])
x[0]|x[-1]|x[1:3]|x[:,0]|x[:,1:]|x[...,0]|x[0,0]|x[0,1:]|x[None]|x[1:3,::2]|x[i]|x[cond]|z[:,0]|z[:,1:3]|len(x)|x.shape|x.dtype|x.size(0)
x.numel()|x.grad
a.__setitem__(0,1.)|a.__setitem__((slice(None),0),b4)|a.__setitem__(cond,0.)|a.__setitem__(i,0.)|x.gather(0,I)|x.index_select(0,i)
F.embedding(i,x)
x.sum()|x.sum(0)|x.mean()|x.mean(0)|x.mean(1,keepdim=True)|x.std()|x.var(0)|x.prod()|x.max()|x.max(1)|x.min(1)|x.amax(0)|x.argmax(1)
x.norm()|x.any()|x.all()
x.softmax(-1)|x.log_softmax(-1)|F.softmax(x,dim=1)|x.logsumexp(0)|v.cumsum(0)|v.sort()|v.topk(3)|v.median()|x.argsort(1)
x.scatter_add(0,I,a)|x.take(i)
ag.linalg.inv(m)|ag.linalg.solve(m,m)|ag.linalg.det(m)|ag.linalg.cholesky(spd)|ag.dot(v,v)|ag.mm(x,a)|ag.mv(x,b4)|ag.outer(v,v)
ag.einsum('ij,jk',x,a)|F.linear(x,a)
F.linear(x,a,b4)|F.mse_loss(x,a)|F.l1_loss(x,a)|F.cross_entropy(x,classes)|F.binary_cross_entropy_with_logits(x,a)|F.nll_loss(x,classes)
F.dropout(x)|F.layer_norm(x,(4,))
ag.tensor(1.)|ag.tensor([1.,2.])|ag.zeros(4,4)|ag.ones(4)|ag.zeros_like(x)|ag.arange(4)|ag.rand(4,4)|ag.randn(4)|x.new_zeros(4)
ag.full((2,2),1.)|a.numpy()
train()|replayed(a, target)|function(a)|recursive()|without_grad()|ag.autograd.grad((x*y).sum(), (x, y))|(x*y).sum().backward()
"""


def work(times):
    """Every statement so many times, with its gradient where it has one."""
    import autograd_cy as ag

    names = {"ag": ag, "nn": ag.nn, "F": ag.nn.functional, "optim": ag.optim}
    exec(TENSORS, names)
    for statement in STATEMENTS.replace("\n", "|").split("|"):
        if not statement:
            continue
        code = compile(statement, statement, "eval")
        for _ in range(times):
            found = eval(code, names)
            if isinstance(found, ag.Tensor) and found.requires_grad and not found.is_leaf:
                found.backward(ag.ones_like(found))


def calls(times):
    """How often each function of the package's libraries was called."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", sys.executable, "-P", "-m", "bench.hot", str(times)],
                       check=True, cwd=ROOT, stderr=subprocess.DEVNULL, env=os.environ | {"AUTOGRAD_CY_LEVEL": "v3"})
        names, counts, callee = {}, Counter(), None
        for line in out.read_text().splitlines():
            if match := re.match(r"c?fn=\((\d+)\)(?: (.*))?", line):
                if match[2]:
                    names[match[1]] = match[2]
                if line.startswith("cfn="):
                    callee = names[match[1]]
            elif match := re.match(r"calls=(\d+)", line):
                counts[callee] += int(match[1])
    return counts


def main():
    """Writes hot_functions.txt."""
    sys.path.insert(0, str(ROOT))
    import rewriting

    known = set()
    for module in rewriting.FAST:
        path, = (ROOT / "build" / "cython").rglob(module.rpartition(".")[2] + ".c")
        known |= rewriting.functions(path.read_text())
    few, many = calls(FEW), calls(MANY)
    hot = {rewriting.function_name(function) for function in many if many[function] - few[function] >= MANY - FEW} & known
    rewriting.HOT.write_text("".join(f"{name}\n" for name in sorted(hot)))
    print(f"{len(hot)} of {len(known)} functions")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        work(int(sys.argv[1]))
    else:
        main()
