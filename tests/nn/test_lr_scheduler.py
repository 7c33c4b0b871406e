"""Schedules of the learning rate, against rates recorded from PyTorch 2.13.

Relies on optim.lr_scheduler.
"""

import pickle

import numpy as np
import pytest

import autograd_cy as ag
from autograd_cy import optim
from autograd_cy.optim import lr_scheduler as schedules

# SGD with lr 0.1 and momentum 0.5: the rate before the first step and after each of eight
RECORDED = [
    ("LambdaLR", lambda S, o: S.LambdaLR(o, lambda t: 0.9 ** t),
     [0.1, 0.09, 0.081, 0.0729, 0.06561, 0.059049, 0.0531441, 0.04782969, 0.043046721]),
    ("MultiplicativeLR", lambda S, o: S.MultiplicativeLR(o, lambda t: 0.9),
     [0.1, 0.09, 0.081, 0.0729, 0.06561, 0.059049, 0.0531441, 0.04782969, 0.043046721]),
    ("StepLR", lambda S, o: S.StepLR(o, 3, 0.5),
     [0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.025, 0.025, 0.025]),
    ("MultiStepLR", lambda S, o: S.MultiStepLR(o, [2, 5, 5], 0.5),
     [0.1, 0.1, 0.05, 0.05, 0.05, 0.0125, 0.0125, 0.0125, 0.0125]),
    ("ConstantLR", lambda S, o: S.ConstantLR(o, 0.5, 3),
     [0.05, 0.05, 0.05, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]),
    ("LinearLR", lambda S, o: S.LinearLR(o, 0.25, 1.0, 4),
     [0.025, 0.04375, 0.0625, 0.08125, 0.1, 0.1, 0.1, 0.1, 0.1]),
    ("ExponentialLR", lambda S, o: S.ExponentialLR(o, 0.8),
     [0.1, 0.08, 0.064, 0.0512, 0.04096, 0.032768, 0.0262144, 0.02097152, 0.016777216]),
    ("PolynomialLR", lambda S, o: S.PolynomialLR(o, 6, 2.0),
     [0.1, 0.06944444444444, 0.04444444444444, 0.025, 0.01111111111111, 0.002777777777778, 0.0, 0.0, 0.0]),
    ("CosineAnnealingLR", lambda S, o: S.CosineAnnealingLR(o, 3, 0.01),
     [0.1, 0.0775, 0.0325, 0.01, 0.0325, 0.0775, 0.1, 0.0775, 0.0325]),
    ("CosineAnnealingWarmRestarts", lambda S, o: S.CosineAnnealingWarmRestarts(o, 2, 2, 0.01),
     [0.1, 0.055, 0.1, 0.08681980515339, 0.055, 0.02318019484661, 0.1, 0.09657457896301, 0.08681980515339]),
    ("OneCycleLR", lambda S, o: S.OneCycleLR(o, 1.0, 10),
     [0.04, 0.52, 1.0, 0.9504846320135, 0.8117456539498, 0.6112620219363, 0.3887419780637, 0.1882583460502, 0.04951936798653]),
    ("OneCycleLR-linear", lambda S, o: S.OneCycleLR(o, 1.0, None, 5, 2, 0.3, "linear", three_phase=True),
     [0.04, 0.52, 1.0, 0.52, 0.04, 0.0320008, 0.0240016, 0.0160024, 0.0080032]),
    ("CyclicLR", lambda S, o: S.CyclicLR(o, 0.01, 0.1, 3),
     [0.01, 0.04, 0.07, 0.1, 0.07, 0.04, 0.01, 0.04, 0.07]),
    ("CyclicLR", lambda S, o: S.CyclicLR(o, 0.01, 0.1, 2, 3, mode="triangular2", cycle_momentum=False),
     [0.01, 0.055, 0.1, 0.07, 0.04, 0.01, 0.0325, 0.055, 0.04]),
    ("CyclicLR", lambda S, o: S.CyclicLR(o, [0.01], [0.1], 2, mode="exp_range", gamma=0.9, base_momentum=0.2, max_momentum=0.6),
     [0.01, 0.0505, 0.0829, 0.042805, 0.01, 0.03657205, 0.05782969, 0.0315233605, 0.01]),
    ("CyclicLR", lambda S, o: S.CyclicLR(o, 0.01, 0.1, 2, 1, scale_fn=lambda k: 1 / (1 + k), scale_mode="iterations"),
     [0.01, 0.0325, 0.04, 0.01, 0.019, 0.025, 0.01, 0.015625, 0.02]),
    ("SequentialLR", lambda S, o: S.SequentialLR(o, [S.LinearLR(o, 0.1, 1.0, 3), S.ExponentialLR(o, 0.9)], [3]),
     [0.01, 0.04, 0.07, 0.1, 0.09, 0.081, 0.0729, 0.06561, 0.059049]),
    ("SequentialLR-constant", lambda S, o: S.SequentialLR(o, [S.ConstantLR(o, 0.1, 20), S.ConstantLR(o, 0.5, 2)], [4]),
     [0.01, 0.01, 0.01, 0.01, 0.05, 0.05, 0.1, 0.1, 0.1]),
    ("ChainedScheduler", lambda S, o: S.ChainedScheduler([S.ConstantLR(o, 0.1, 2), S.ExponentialLR(o, 0.9)]),
     [0.01, 0.009, 0.081, 0.0729, 0.06561, 0.059049, 0.0531441, 0.04782969, 0.043046721]),
]


def optimizer(**options):
    return optim.SGD([ag.ones(1).requires_grad_()], lr=0.1, momentum=0.5, **options)


@pytest.mark.parametrize(("make", "expected"), [case[1:] for case in RECORDED], ids=[case[0] for case in RECORDED])
def test_recorded_rates(make, expected):
    opt = optimizer()
    schedule = make(schedules, opt)
    rates = [opt.param_groups[0]["lr"]]
    for _ in range(8):
        schedule.step()
        rates.append(opt.param_groups[0]["lr"])
        assert schedule.get_last_lr() == rates[-1:]
    np.testing.assert_allclose(rates, expected, rtol=1e-12, atol=1e-16)


@pytest.mark.parametrize("make", [case[1] for case in RECORDED], ids=[case[0] for case in RECORDED])
def test_saved_and_loaded(make):
    whole, first = optimizer(), optimizer()
    a, b = make(schedules, whole), make(schedules, first)
    for _ in range(4):
        a.step()
        b.step()
    states = pickle.loads(pickle.dumps((first.state_dict(), b.state_dict())))
    second = optimizer()
    c = make(schedules, second)
    second.load_state_dict(states[0])
    c.load_state_dict(states[1])
    for _ in range(4):
        a.step()
        c.step()
        assert whole.param_groups[0]["lr"] == second.param_groups[0]["lr"]
        assert whole.param_groups[0]["momentum"] == second.param_groups[0]["momentum"]


def test_cosine_over_several_periods():
    opt = optimizer()
    schedule = schedules.CosineAnnealingLR(opt, 3)
    for t in range(1, 15):
        schedule.step()
        assert opt.param_groups[0]["lr"] == pytest.approx(0.05 * (1 + np.cos(np.pi * t / 3)), abs=1e-12)


def test_groups_and_rates_edited_in_between():
    p, q = (ag.ones(1).requires_grad_() for _ in range(2))
    opt = optim.SGD([{"params": [p]}, {"params": [q], "lr": 1.0}], lr=0.1)
    schedule = schedules.ExponentialLR(opt, 0.5)
    schedule.step()
    assert schedule.get_last_lr() == [0.05, 0.5]
    opt.param_groups[0]["lr"] = 8.0
    schedule.step()
    assert schedule.get_last_lr() == [4.0, 0.25]
    with pytest.raises(ValueError, match="Expected 2 lr_lambdas"):
        schedules.LambdaLR(opt, [lambda t: t])


def test_one_cycle_momentum():
    opt = optimizer()
    schedule = schedules.OneCycleLR(opt, 1.0, 10)
    assert opt.param_groups[0]["momentum"] == 0.95
    schedule.step()
    schedule.step()
    assert opt.param_groups[0]["momentum"] == pytest.approx(0.85)
    adam = optim.Adam([ag.ones(1).requires_grad_()])
    schedules.OneCycleLR(adam, 1.0, 10)
    assert adam.param_groups[0]["betas"] == (0.95, 0.999)
    for _ in range(8):
        schedule.step()
    with pytest.raises(ValueError, match="total steps"):
        schedule.step()


def test_cyclic_momentum():
    opt = optimizer()
    schedule = schedules.CyclicLR(opt, 0.01, 0.1, 2, base_momentum=0.6, max_momentum=0.8)
    momenta = []
    for _ in range(4):
        momenta.append(opt.param_groups[0]["momentum"])
        schedule.step()
    np.testing.assert_allclose(momenta, [0.8, 0.7, 0.6, 0.7])
    with pytest.raises(ValueError, match="mode is invalid"):
        schedules.CyclicLR(opt, 0.01, 0.1, mode="square")
    with pytest.raises(ValueError, match="momentum"):
        schedules.CyclicLR(optim.Adagrad([ag.ones(1, requires_grad=True)]), 0.01, 0.1)


def test_reduce_on_plateau():
    opt = optimizer()
    schedule = schedules.ReduceLROnPlateau(opt, factor=0.5, patience=1, cooldown=1, min_lr=0.03)
    rates = []
    for loss in (1.0, 0.9, 0.9, 0.9, 0.9, 0.9, ag.tensor(0.9), 0.9, 0.5):
        schedule.step(loss)
        rates.append(opt.param_groups[0]["lr"])
    np.testing.assert_allclose(rates, [0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.03, 0.03, 0.03])
    assert schedule.best == 0.5
    best = schedules.ReduceLROnPlateau(opt, mode="max", threshold=0.1, threshold_mode="abs", patience=0)
    for score in (1.0, 1.05):
        best.step(score)
    assert opt.param_groups[0]["lr"] == pytest.approx(0.003)


def test_resuming():
    opt = optimizer()
    with pytest.raises(KeyError, match="initial_lr"):
        schedules.StepLR(opt, 2, last_epoch=3)
    opt.param_groups[0]["initial_lr"] = 0.1
    assert schedules.StepLR(opt, 2, 0.5, last_epoch=3).get_last_lr() == [0.05]


@pytest.mark.parametrize("make", [
    lambda o: schedules.ConstantLR(o, 2.0), lambda o: schedules.LinearLR(o, 0.0), lambda o: schedules.LinearLR(o, 0.5, 2.0),
    lambda o: schedules.CosineAnnealingWarmRestarts(o, 0), lambda o: schedules.OneCycleLR(o, 1.0),
    lambda o: schedules.OneCycleLR(o, 1.0, 10, anneal_strategy="steps"), lambda o: schedules.SequentialLR(o, [], []),
    lambda o: schedules.ReduceLROnPlateau(o, factor=1.0), lambda o: schedules.ReduceLROnPlateau(o, mode="least"),
    lambda o: schedules.SequentialLR(o, [schedules.StepLR(o, 1)], [3]),
    lambda o: schedules.ChainedScheduler([schedules.StepLR(o, 1), schedules.StepLR(optimizer(), 1)]),
])
def test_refusals(make):
    with pytest.raises(ValueError):
        make(optimizer())


def test_not_an_optimizer():
    with pytest.raises(TypeError, match="is not an Optimizer"):
        schedules.StepLR([1], 2)
