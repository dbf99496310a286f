"""Remat for PyTorch: a budget in bytes for the memory of a training step.

    import remat.torch

    model = remat.torch.auto_checkpoint(model, example_inputs, budget="8GB")
    model(*inputs).backward()

`fit` says what a module needs before anything runs. See docs/pytorch.md.
"""
import importlib

try:
    importlib.import_module("torch")
except ImportError as error:
    raise ImportError("remat.torch needs PyTorch 1.13 or later: install the package torch") from error

from .chain_fallback import ChainPlan, PlannedChain, checkpoint_sequential
from .compile_partition import compile_module
from .module_fit import Fit, fit
from .plan_errors import BudgetError, CaptureError, TorchPlanError, VerifyError
from .planned_module import PlannedModule, auto_checkpoint
from .step_memory import CountedTensors, StepMemory
from .step_plan import StepPlan

__all__ = ["BudgetError", "CaptureError", "ChainPlan", "CountedTensors", "Fit", "PlannedChain", "PlannedModule", "StepMemory",
           "StepPlan", "TorchPlanError", "VerifyError", "auto_checkpoint", "checkpoint_sequential", "compile_module",
           "fit"]
