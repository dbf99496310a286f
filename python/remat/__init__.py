"""Remat: train neural networks in the memory you have.

    import remat

    plan = remat.Graph.load("graph.json").plan("8GB")
    print(plan.peak_bytes, plan.total_cost)
    plan.report("page.html")

    model = remat.Model.load("model.ini")
    trainer = remat.Trainer(model, budget="300MiB")
    trainer.run()

What is planned: `Profile` (a chain of layers) and `Graph` (tensors and actions) make plans and curves; `place` finds
offsets of tensors in one arena. What is trained: `Model`, `Trainer`, `Predictor` and `Evaluation`. Language models:
`Tokenizer` and `Generator`. `Report` makes HTML pages.

A budget is a number of bytes or a text such as "64KiB", "8GB" (powers of 1000) or "1.5GiB" (powers of 1024).

Every failure is an exception with the library's own sentence; see `remat.errors`. Warnings of the library are Python
warnings of the class `RematWarning`.

Threads: an object may be used by several threads. Calls on it wait for one another, and other Python threads run
meanwhile. Objects that were made from one another, such as a graph and its plans, share a lock; others
work at the same time.
"""

import importlib
from typing import Any

from ._library import version as __version__
from .arenas import LIFETIME, LifetimeTable, Placement, check_placement, place
from .curves import Curve, CurvePoint
from .doctor import Doctor, MachineLimits, doctor, measure_limits
from .errors import (
    BudgetError,
    CheckError,
    DivergedError,
    Error,
    FileError,
    InputFileError,
    InternalError,
    InvalidError,
    OutOfMemoryError,
    RematWarning,
    Status,
)
from .evaluations import ClassFigures, Evaluation, EvaluationFigures, TargetFigures
from .generators import Generator, GeneratorFigures
from .graph_plans import GraphCurve, GraphPlace, GraphPlan, GraphPlanFigures, GraphPoint, GraphStep
from .graphs import Graph, GraphAction, GraphFigures, GraphTensor
from .models import Model, ModelLayer, SampleField, layer_types
from .parameters import Parameter
from .plans import MemoryColumn, Plan, PlanFigures, PlanStatistics, Strategy, strategies
from .predictors import Predictor
from .profiles import LAYER_TYPES, Layer, Mode, Profile
from .reports import Report
from .schedules import LiveTensor, ScheduleFigures, Step
from .tokenizers import SamplesFigures, SamplesRow, TextSamples, Tokenizer
from .trainers import UNLIMITED, Trainer
from .training_records import (
    Action,
    Measurement,
    RunResult,
    StepResult,
    TrainCurve,
    TrainerFigures,
    TrainPoint,
    ValidationResult,
)
from .units import format_size, parse_size

__all__ = [
    "Action",
    "BudgetError",
    "CheckError",
    "ClassFigures",
    "Curve",
    "CurvePoint",
    "DivergedError",
    "Doctor",
    "Error",
    "Evaluation",
    "EvaluationFigures",
    "FileError",
    "Generator",
    "GeneratorFigures",
    "Graph",
    "GraphAction",
    "GraphCurve",
    "GraphFigures",
    "GraphPlace",
    "GraphPlan",
    "GraphPlanFigures",
    "GraphPoint",
    "GraphStep",
    "GraphTensor",
    "InputFileError",
    "InternalError",
    "InvalidError",
    "LAYER_TYPES",
    "LIFETIME",
    "Layer",
    "LifetimeTable",
    "LiveTensor",
    "MachineLimits",
    "Measurement",
    "MemoryColumn",
    "Mode",
    "Model",
    "ModelLayer",
    "OutOfMemoryError",
    "Parameter",
    "Placement",
    "Plan",
    "PlanFigures",
    "PlanStatistics",
    "Predictor",
    "Profile",
    "RematWarning",
    "Report",
    "RunResult",
    "SampleField",
    "SamplesFigures",
    "SamplesRow",
    "ScheduleFigures",
    "Status",
    "Step",
    "StepResult",
    "Strategy",
    "TargetFigures",
    "TextSamples",
    "Tokenizer",
    "TrainCurve",
    "TrainPoint",
    "Trainer",
    "TrainerFigures",
    "UNLIMITED",
    "ValidationResult",
    "__version__",
    "check_placement",
    "doctor",
    "format_size",
    "layer_types",
    "measure_limits",
    "parse_size",
    "place",
    "strategies",
]


def __getattr__(name: str) -> Any:
    """Imports `remat.torch` when it is first named: PyTorch takes seconds, and not everybody has it."""
    if name == "torch":
        try:
            return importlib.import_module(".torch", __name__)
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.torch":
                raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
