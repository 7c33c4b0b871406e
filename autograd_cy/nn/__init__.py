"""Modules, layers, losses, initialisers: the names of torch.nn.

Relies on the engine.  Models rely on it.
"""

from . import functional, init, utils
from .activation import (
    CELU, ELU, GELU, GLU, SELU, Hardshrink, Hardsigmoid, Hardswish, Hardtanh, LeakyReLU, LogSigmoid, LogSoftmax, Mish, PReLU, ReLU, ReLU6,
    Sigmoid, SiLU, Softmax, Softmin, Softplus, Softshrink, Softsign, Tanh, Tanhshrink, Threshold,
)
from .containers import ModuleDict, ModuleList, ParameterList, Sequential
from .dropout import Dropout
from .linear import Bilinear, Flatten, Identity, Linear
from .loss import BCELoss, BCEWithLogitsLoss, CrossEntropyLoss, L1Loss, MSELoss, NLLLoss
from .module import Module
from .parameter import Parameter

__all__ = ["BCELoss", "BCEWithLogitsLoss", "Bilinear", "CELU", "CrossEntropyLoss", "Dropout", "ELU", "Flatten", "GELU", "GLU",
           "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "Identity", "L1Loss", "LeakyReLU", "Linear", "LogSigmoid",
           "LogSoftmax", "MSELoss", "Mish", "Module", "ModuleDict", "ModuleList", "NLLLoss", "PReLU", "Parameter", "ParameterList",
           "ReLU", "ReLU6", "SELU", "Sequential", "SiLU", "Sigmoid", "Softmax", "Softmin", "Softplus", "Softshrink", "Softsign",
           "Tanh", "Tanhshrink", "Threshold",
           "functional", "init", "utils"]
