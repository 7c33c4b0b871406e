"""Modules, layers, losses, initialisers: the names of torch.nn.

Relies on the engine.  Models rely on it.
"""

from . import functional, init, utils
from .activation import ELU, GELU, LeakyReLU, LogSigmoid, LogSoftmax, ReLU, Sigmoid, SiLU, Softmax, Softplus, Tanh
from .containers import ModuleDict, ModuleList, ParameterList, Sequential
from .dropout import Dropout
from .linear import Bilinear, Flatten, Identity, Linear
from .loss import BCELoss, BCEWithLogitsLoss, CrossEntropyLoss, L1Loss, MSELoss, NLLLoss
from .module import Module
from .parameter import Parameter

__all__ = ["BCELoss", "BCEWithLogitsLoss", "Bilinear", "CrossEntropyLoss", "Dropout", "ELU", "Flatten", "GELU", "Identity", "L1Loss",
           "LeakyReLU", "Linear", "LogSigmoid", "LogSoftmax", "MSELoss", "Module", "ModuleDict", "ModuleList", "NLLLoss",
           "Parameter", "ParameterList", "ReLU", "Sequential", "SiLU", "Sigmoid", "Softmax", "Softplus", "Tanh",
           "functional", "init", "utils"]
