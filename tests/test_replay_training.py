"""`ag.compile` on training steps: equal bytes to eager code over any sequence of calls, told as stories that run both ways.

Relies on tests/replaying.py and the package; nothing relies on it.
"""

import collections

import pytest
from replaying import Stories, batch, compare, network, trainer

import autograd_cy as ag
from autograd_cy import nn
from autograd_cy.nn import functional as F

story = STORIES = Stories()


# ---- optimisers

OPTIMIZERS = {
    "sgd": lambda p: ag.optim.SGD(p, lr=0.1),
    "sgd momentum": lambda p: ag.optim.SGD(p, lr=0.1, momentum=0.9),
    "sgd dampening": lambda p: ag.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.3),
    "sgd nesterov": lambda p: ag.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "sgd decay": lambda p: ag.optim.SGD(p, lr=0.1, momentum=0.5, weight_decay=0.02),
    "sgd maximize": lambda p: ag.optim.SGD(p, lr=0.01, maximize=True, foreach=True),
    "adam": lambda p: ag.optim.Adam(p, lr=0.02),
    "adam betas": lambda p: ag.optim.Adam(p, lr=0.02, betas=(0.5, 0.7), eps=1e-4, foreach=True),
    "adam amsgrad": lambda p: ag.optim.Adam(p, lr=0.02, amsgrad=True),
    "adam decay": lambda p: ag.optim.Adam(p, lr=0.02, weight_decay=0.1),
    "adam maximize": lambda p: ag.optim.Adam(p, lr=0.02, maximize=True, fused=True),
    "adam decoupled": lambda p: ag.optim.Adam(p, lr=0.02, weight_decay=0.1, decoupled_weight_decay=True),
    "adamw": lambda p: ag.optim.AdamW(p, lr=0.02),
    "adamw amsgrad": lambda p: ag.optim.AdamW(p, lr=0.02, amsgrad=True, maximize=True),
    "rmsprop": lambda p: ag.optim.RMSprop(p, lr=0.02),
    "rmsprop momentum": lambda p: ag.optim.RMSprop(p, lr=0.02, momentum=0.8, weight_decay=0.01),
    "rmsprop centered": lambda p: ag.optim.RMSprop(p, lr=0.02, centered=True, maximize=True),
    "rmsprop all": lambda p: ag.optim.RMSprop(p, lr=0.02, centered=True, momentum=0.9, alpha=0.9, eps=1e-5),
    "groups": lambda p: ag.optim.Adam([{"params": p[:1], "lr": 0.5, "weight_decay": 0.1}, {"params": p[1:3], "betas": (0.1, 0.2)},
                                       {"params": p[3:], "amsgrad": True}], lr=0.01),
    "sgd groups": lambda p: ag.optim.SGD([{"params": p[:2]}, {"params": p[2:], "lr": 0.003, "momentum": 0.9}], lr=0.1),
}


@pytest.mark.parametrize("dtype", [ag.float32, ag.float64], ids=str)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name, dtype):
    """Ten steps, with options changed in mid-sequence."""
    def tale(play):
        model = network(dtype=dtype)
        optimizer = OPTIMIZERS[name](list(model.parameters()))
        step = play(trainer(model, optimizer))
        for k in range(12):
            x, y = batch(k, dtype="f4" if dtype == ag.float32 else "f8")
            yield step(x, y), model, optimizer
            if k == 5:
                for group in optimizer.param_groups:
                    group["lr"] *= 0.37
                    group["weight_decay"] = 0.123
            if k == 7:
                optimizer.param_groups[0]["maximize"] = not optimizer.param_groups[0]["maximize"]
            if k == 9 and "betas" in optimizer.param_groups[0]:
                optimizer.param_groups[-1]["betas"] = (0.3, 0.6)
            if k == 9 and "momentum" in optimizer.param_groups[0]:
                optimizer.param_groups[-1]["momentum"] = 0.25
    compare(tale)


# ---- optimisers written as operations of tensors

class Signs(ag.optim.Optimizer):
    """A user's own: steps by the sign of a running mean."""

    def __init__(self, params, lr=0.1, weight_decay=0.0):
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay})

    @ag.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["mean"] = ag.zeros_like(p)
                state["mean"].lerp_(p.grad, 0.1)
                p.mul_(1 - group["lr"] * group["weight_decay"]).sub_(state["mean"].sign() * group["lr"])


class Renamed(ag.optim.NAdam):
    """A user's subclass that adds nothing."""


def muon(params, **options):
    return ag.optim.Muon([p for p in params if p.ndim == 2], **options)


COMPOSED = [ag.optim.Adagrad, ag.optim.Adadelta, ag.optim.Adamax, ag.optim.NAdam, ag.optim.RAdam, ag.optim.Rprop, ag.optim.ASGD, ag.optim.Adafactor,
            muon, Signs, Renamed]   # fmt: skip


@pytest.mark.parametrize("make", COMPOSED)
def test_composed_optimisers(make):
    options = {} if make is ag.optim.Rprop else {"weight_decay": 0.1}

    def tale(play):
        model = network()
        optimizer = make(model.parameters(), lr=0.05, **options)
        step = play(trainer(model, optimizer))
        for k in range(18):
            yield step(*batch(k)), model, optimizer
            if k == 6:
                optimizer.param_groups[0]["lr"] = 0.01
            if k == 9:
                optimizer.state.clear()
            if k == 12:
                optimizer.load_state_dict(optimizer.state_dict())
    compare(tale, most=10)             # three, and again after each change: two that agree, one more for new states


def test_a_composed_optimiser_needs_two_captures():
    """The first call makes its states and is no capture to compare with; of the fourth on it is replayed."""
    def tale(play):
        model = network()
        optimizer = ag.optim.NAdam(model.parameters(), lr=0.05)
        step = play(trainer(model, optimizer))
        for k in range(9):
            yield step(*batch(k)), model, optimizer
    compare(tale, captures=3)


SCHEDULERS = {
    "step": lambda o: ag.optim.lr_scheduler.StepLR(o, 2, 0.5),
    "cosine": lambda o: ag.optim.lr_scheduler.CosineAnnealingLR(o, 5),
    "lambda": lambda o: ag.optim.lr_scheduler.LambdaLR(o, lambda k: 1 / (k + 1)),
    "exponential": lambda o: ag.optim.lr_scheduler.ExponentialLR(o, 0.9),
    "linear": lambda o: ag.optim.lr_scheduler.LinearLR(o),
    "warm restarts": lambda o: ag.optim.lr_scheduler.CosineAnnealingWarmRestarts(o, 3),
    "one cycle": lambda o: ag.optim.lr_scheduler.OneCycleLR(o, 0.3, total_steps=20),
}


@pytest.mark.parametrize(("make", "captures"), [(lambda p: ag.optim.SGD(p, lr=0.1, momentum=0.9), 2), (lambda p: ag.optim.NAdam(p, lr=0.1), 3)])
@pytest.mark.parametrize("name", SCHEDULERS)
def test_schedules(name, make, captures):
    def tale(play):
        model = network()
        optimizer = make(model.parameters())
        scheduler = SCHEDULERS[name](optimizer)
        step = play(trainer(model, optimizer))
        for k in range(10):
            yield step(*batch(k)), model, optimizer, optimizer.param_groups[0]["lr"]
            scheduler.step()
    compare(tale, captures=captures)


# ---- gradients: cleared, accumulated, clipped, held

def clearing(name):
    def tale(play):
        model = network()
        optimizer = ag.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)

        def step(x, y):
            if name in ("start", "start zeros", "model"):
                {"start": optimizer.zero_grad, "start zeros": lambda: optimizer.zero_grad(set_to_none=False), "model": model.zero_grad}[name]()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            if name == "norm":
                norm = nn.utils.clip_grad_norm_(model.parameters(), 0.3)
            if name == "infinite norm":
                norm = nn.utils.clip_grad_norm_(model.parameters(), 0.1, norm_type=float("inf"))
            if name == "one norm":
                norm = nn.utils.clip_grad_norm_(model.parameters(), 1e5, norm_type=1)
            if name == "value":
                nn.utils.clip_grad_value_(model.parameters(), 0.05)
            optimizer.step()
            if name == "end":
                optimizer.zero_grad()
            if name == "end zeros":
                optimizer.zero_grad(set_to_none=False)
            if "norm" in name or name == "value":
                optimizer.zero_grad(set_to_none=name != "one norm")
            return (loss, norm) if "norm" in name else loss
        step = play(step)
        for k in range(10):
            yield step(*batch(k)), model, optimizer
            if k == 6:
                optimizer.zero_grad()
    return tale


@pytest.mark.parametrize("name", ["start", "start zeros", "model", "end", "end zeros", "none", "norm", "infinite norm", "one norm", "value"])
def test_clearing_and_clipping(name):
    compare(clearing(name))


@story
def held_losses_and_gradients(play):
    """What a user keeps does not change under them."""
    model = network()
    optimizer = ag.optim.Adam(model.parameters(), lr=0.05)
    step = play(trainer(model, optimizer))
    kept = []
    for k in range(9):
        loss = step(*batch(k))
        kept.append(loss)
        if k % 3 == 1:
            kept += [p.grad for p in model.parameters()]
            kept.append(next(model.parameters()).grad.T)
        if k == 5:
            kept.append(loss[None])
            del loss
        yield kept, model, optimizer


@story
def gradient_seen_through_numpy(play):
    model = network()
    optimizer = ag.optim.SGD(model.parameters(), lr=0.05)
    step = play(trainer(model, optimizer))
    kept = []
    for k in range(8):
        loss = step(*batch(k))
        kept += [loss.detach().numpy(), model[0].weight.grad.numpy(), model[0].bias.grad.numpy()[1:]]
        yield [a.tobytes() for a in kept]


@story
def gradient_written_by_the_user(play):
    """The user's own change of a gradient counts where the step adds to it."""
    model = network()
    optimizer = ag.optim.SGD(model.parameters(), lr=0.05)

    def step(x, y):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss
    step = play(step)
    for k in range(12):
        yield step(*batch(k)), model, optimizer
        if k == 4:
            model[0].weight.grad.zero_()
        if k == 6:
            model[0].weight.grad = ag.ones_like(model[0].weight)
        if k == 8:
            model[2].bias.grad = None
        if k == 10:
            model[0].weight.grad.mul_(2)


@story
def micro_batches(play):
    """Accumulation over four calls, then an update, as two compiled functions."""
    model = network()
    optimizer = ag.optim.Adam(model.parameters(), lr=0.05)

    def add(x, y):
        loss = F.cross_entropy(model(x), y) / 4
        loss.backward()
        return loss

    def update():
        optimizer.step()
        optimizer.zero_grad()
    add, update = play(add), play(update)
    for k in range(24):
        yield add(*batch(k)), model, optimizer
        if k % 4 == 3:
            yield update(), model, optimizer


@story
def accumulate_inside(play):
    model = network()
    optimizer = ag.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    def step(x, y):
        optimizer.zero_grad()
        total = 0
        for part, target in zip(x.chunk(3), y.chunk(3)):
            loss = F.cross_entropy(model(part), target) / 3
            loss.backward()
            total = total + loss.detach()
        optimizer.step()
        return total
    step = play(step)
    for k in range(8):
        yield step(*batch(k)), model, optimizer


# ---- changes between calls

@story
def parameters_written_in_place(play):
    model = network()
    optimizer = ag.optim.Adam(model.parameters(), lr=0.05)
    step = play(trainer(model, optimizer))
    for k in range(12):
        yield step(*batch(k)), model, optimizer
        if k == 3:
            with ag.no_grad():
                model[0].weight.mul_(0.5)
        if k == 5:
            with ag.no_grad():
                model[2].bias.copy_(ag.arange(3).float())
        if k == 7:
            model[0].weight.data.zero_()
        if k == 9:
            model[0].weight.detach().numpy()[1] = 3.0


@story
def parameters_replaced(play):
    model = network()
    optimizer = ag.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    step = play(trainer(model, optimizer))
    for k in range(14):
        yield step(*batch(k)), model, optimizer
        if k == 3:
            model[0].weight.data = ag.ones(5, 4)
        if k == 6:
            model[0].bias = nn.Parameter(ag.ones(5))        # the optimizer keeps the old one
        if k == 9:
            model[2] = nn.Linear(5, 3)
            optimizer.add_param_group({"params": list(model[2].parameters()), "lr": 0.01})


@story
def state_dicts(play):
    model = network()
    optimizer = ag.optim.Adam(model.parameters(), lr=0.05, amsgrad=True)
    step = play(trainer(model, optimizer))
    for k in range(14):
        yield step(*batch(k)), model, optimizer
        if k == 2:
            import copy
            saved = copy.deepcopy([model.state_dict(), optimizer.state_dict()])
        if k in (5, 9):
            model.load_state_dict(saved[0])
            optimizer.load_state_dict(saved[1])
        if k == 11:
            optimizer.load_state_dict(optimizer.state_dict())


@story
def optimizer_state_changed(play):
    model = network()
    optimizer = ag.optim.Adam(model.parameters(), lr=0.05)
    step = play(trainer(model, optimizer))
    for k in range(20):
        yield step(*batch(k)), model, optimizer
        p = model[0].weight
        if k == 3:
            optimizer.state.clear()
        if k == 6:
            optimizer.state[p]["exp_avg"] = ag.ones_like(p).detach()
        if k == 9:
            optimizer.state[p]["exp_avg"].zero_()
        if k == 11:
            optimizer.state[p]["step"] = 100
        if k == 13:
            del optimizer.state[p]
        if k == 15:
            optimizer.state[p] = {"step": 3, "exp_avg": ag.zeros(5, 4), "exp_avg_sq": ag.ones(5, 4)}
        if k == 17:
            optimizer.state = collections.defaultdict(dict)


@story
def sgd_state_changed(play):
    model = network()
    optimizer = ag.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, dampening=0.5)
    step = play(trainer(model, optimizer))
    for k in range(16):
        yield step(*batch(k)), model, optimizer
        p = model[0].weight
        if k == 3:
            optimizer.state.clear()
        if k == 6:
            optimizer.state[p]["momentum_buffer"] = None
        if k == 9:
            optimizer.state[p] = {"momentum_buffer": ag.ones(5, 4)}
        if k == 12:
            optimizer.state.pop(p)


@story
def requires_grad_toggled(play):
    model = network()
    optimizer = ag.optim.SGD(model.parameters(), lr=0.05)
    step = play(trainer(model, optimizer))
    for k in range(14):
        yield step(*batch(k)), model, optimizer
        if k == 3:
            model[0].requires_grad_(False)
        if k == 7:
            model[0].requires_grad_(True)
        if k == 9:
            model[2].bias.requires_grad = False


@story
def options_of_losses(play):
    model = network()
    criterion = nn.CrossEntropyLoss(weight=ag.tensor([1.0, 2.0, 3.0]))
    optimizer = ag.optim.SGD(model.parameters(), lr=0.05)
    step = play(trainer(model, optimizer, criterion))
    for k in range(16):
        yield step(*batch(k)), model
        if k == 3:
            criterion.label_smoothing = 0.1
        if k == 5:
            criterion.weight = ag.tensor([0.1, 0.2, 0.3])
        if k == 7:
            criterion.ignore_index = 1
        if k == 9:
            criterion.reduction = "sum"
        if k == 11:
            criterion.weight.mul_(2)
        if k == 13:
            criterion.weight = None


@story
def dropout(play):
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.4), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 3))
    optimizer = ag.optim.Adam(model.parameters(), lr=0.05)
    step = play(trainer(model, optimizer))
    for k in range(16):
        yield step(*batch(k)), model, optimizer
        if k == 3:
            ag.manual_seed(3)
        if k == 5:
            model.eval()
        if k == 8:
            model.train()
        if k == 10:
            yield ag.rand(3)
        if k == 12:
            model[1].p = 0.6


@story
def evaluation(play):
    """A compiled module in evaluation, under no_grad, between steps of training."""
    model = network()
    optimizer = ag.optim.Adam(model.parameters(), lr=0.05)
    step, predict = play(trainer(model, optimizer)), play(lambda x: model(x).argmax(1))
    for k in range(8):
        yield step(*batch(k)), model
        with ag.no_grad():
            yield predict(batch(50 + k)[0])
        yield predict(batch(60 + k)[0])


# ---- modules, nesting, several steps

@story
def module_as_function(play):
    """A compiled Module is one node; the loop around it is eager."""
    model = network()
    optimizer = ag.optim.Adam(model.parameters(), lr=0.05)
    forward = play(model)
    for k in range(10):
        x, y = batch(k)
        optimizer.zero_grad()
        x.requires_grad_(k % 2 == 1)
        out = forward(x)
        loss = F.cross_entropy(out, y)
        loss.backward()
        yield out, loss, x, model
        optimizer.step()


@story(modes=("compiled",))
def compiled_module_in_compiled_step(play):
    model = network()
    optimizer = ag.optim.Adam(model.parameters(), lr=0.05)
    forward = play(model)
    step = play(trainer(forward, optimizer))
    for k in range(8):
        yield step(*batch(k)), model, optimizer
        yield forward(batch(k)[0])


@story
def two_steps_share_models(play):
    """A generator and a discriminator."""
    maker, judge = nn.Sequential(nn.Linear(2, 6), nn.Tanh(), nn.Linear(6, 4)), nn.Sequential(nn.Linear(4, 6), nn.LeakyReLU(0.2), nn.Linear(6, 1))
    first, second = ag.optim.Adam(maker.parameters(), lr=0.01), ag.optim.Adam(judge.parameters(), lr=0.02)
    criterion = nn.BCEWithLogitsLoss()

    def teach(real, noise):
        second.zero_grad()
        fake = maker(noise).detach()
        loss = criterion(judge(real), ag.ones(len(real), 1)) + criterion(judge(fake), ag.zeros(len(noise), 1))
        loss.backward()
        second.step()
        return loss

    def make(noise):
        first.zero_grad()
        loss = criterion(judge(maker(noise)), ag.ones(len(noise), 1))
        loss.backward()
        first.step()
        return loss
    teach, make = play(teach), play(make)
    for k in range(12):
        noise = ag.randn(6, 2)
        yield teach(batch(k)[0], noise), make(noise), maker, judge, first, second
        if k % 3 == 2:
            yield make(noise), make(noise), maker, judge


@story
def frozen_copy(play):
    """A target network follows by an exponential average."""
    model, target = network(), network()
    optimizer = ag.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        with ag.no_grad():
            aim = target(x)
        loss = F.mse_loss(model(x), aim)
        loss.backward()
        optimizer.step()
        with ag.no_grad():
            for p, q in zip(model.parameters(), target.parameters()):
                q.mul_(0.9).add_(p, alpha=0.1)
        return loss
    step = play(step)
    for k in range(8):
        yield step(batch(k)[0]), model, target


@story
def gradient_penalty(play):
    """create_graph inside the step."""
    model = network()
    optimizer = ag.optim.Adam(model.parameters(), lr=0.01)

    def step(x):
        optimizer.zero_grad()
        x = x.detach().requires_grad_()
        out = model(x).sum()
        slope, = ag.autograd.grad(out, x, create_graph=True)
        loss = out + ((slope.norm(2, 1) - 1) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss, slope.detach()
    step = play(step)
    for k in range(8):
        yield step(batch(k)[0]), model, optimizer


@story
def retained_graph(play):
    model = network()

    def step(x, y):
        model.zero_grad()
        out = model(x)
        loss = F.cross_entropy(out, y)
        loss.backward(retain_graph=True)
        (loss * 2 + out.mean()).backward()
        return loss, out.detach()
    step = play(step)
    for k in range(8):
        yield step(*batch(k)), model


@story
def functional_gradients(play):
    """grad() instead of backward(), update by hand."""
    w, b = ag.randn(4, 3, requires_grad=True), ag.zeros(3, requires_grad=True)

    def step(x, y):
        loss = F.cross_entropy(x @ w + b, y)
        gw, gb = ag.autograd.grad(loss, (w, b))
        with ag.no_grad():
            w.sub_(gw * 0.1)
            b.sub_(gb, alpha=0.1)
        return loss, gw
    step = play(step)
    for k in range(8):
        yield step(*batch(k)), w, b


@story
def assigned_in_place(play):
    """The article's loop: `w -= ...` on globals of the step, gradients set to None."""
    w = ag.randn(4, 3, requires_grad=True)

    def step(x, y):
        loss = F.cross_entropy(x @ w, y)
        loss.backward()
        with ag.no_grad():
            for p in (w,):
                p -= 0.1 * p.grad
                p.grad = None
        return loss
    step = play(step)
    for k in range(8):
        yield step(*batch(k)), w


# ---- what the code reads

@story
def python_values_change(play):
    settings = {"scale": 2.0, "layers": [1, 2]}
    width = 3

    def f(x):
        for n in settings["layers"]:
            x = x * settings["scale"] + n
        return x.tanh() * width
    f = play(f)
    for k in range(16):
        yield f(batch(k)[0])
        if k == 3:
            settings["scale"] = 3.0
        if k == 5:
            settings["layers"].append(5)
        if k == 7:
            width = 7
        if k == 9:
            settings = {"scale": 1, "layers": (1,)}
        if k == 11:
            settings["scale"] = 2.0
        if k == 13:
            settings["scale"] = True


@story
def methods_and_closures_change(play):
    class Model(nn.Module):
        activation = "tanh"

        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 4)
            self.extra = None

        def forward(self, x):
            x = getattr(ag, self.activation)(self.inner(x))
            return x if self.extra is None else self.extra(x)
    model = Model()
    f = play(lambda x: model(x).sum(1))
    for k in range(16):
        yield f(batch(k)[0])
        if k == 3:
            model.activation = "relu"
        if k == 5:
            Model.activation = "exp"
            del model.activation
        if k == 7:
            model.extra = nn.Linear(4, 2)
        if k == 9:
            model.forward = lambda x: x * 2
        if k == 11:
            del model.forward
            Model.forward = lambda self, x: self.inner(x)


@story
def buffers(play):
    """Running statistics that a layer of the user's keeps."""
    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", ag.zeros(4))
            self.register_buffer("steps", ag.tensor(0))
            self.weight = nn.Parameter(ag.ones(4))

        def forward(self, x):
            if not self.training:
                return (x - self.mean) * self.weight
            mean = x.mean(0)
            with ag.no_grad():
                self.mean.mul_(0.9).add_(mean, alpha=0.1)
                self.steps.add_(1)
            return (x - mean) * self.weight
    model = nn.Sequential(nn.Linear(4, 4), Norm(), nn.Linear(4, 3))
    optimizer = ag.optim.SGD(model.parameters(), lr=0.1)
    step = play(trainer(model, optimizer))
    for k in range(12):
        yield step(*batch(k)), model
        if k == 4:
            model.eval()
        if k == 7:
            model.train()
        if k == 9:
            model[1].mean = ag.ones(4)


@story
def random_numbers(play):
    def f(x):
        noise = ag.randn(6, 4) * 0.1 + ag.rand(4) - ag.bernoulli(ag.full((6, 4), 0.3))
        return x + noise, ag.randint(0, 5, (3,)), ag.randperm(5), ag.rand_like(x)
    f = play(f)
    for k in range(8):
        yield f(batch(k)[0])
        if k == 4:
            ag.manual_seed(1)
        yield ag.rand(1)


@story
def generators_of_their_own(play):
    generator = ag.Generator()
    generator.manual_seed(4)
    f = play(lambda x: x + ag.randn(4, generator=generator))
    for k in range(8):
        yield f(batch(k)[0])
        if k == 5:
            generator.manual_seed(9)


@pytest.mark.parametrize("name", STORIES)
def test_stories(name):
    tale, expected = STORIES[name]
    compare(tale, **expected)
