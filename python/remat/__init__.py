"""Remat: train neural networks in the memory you have.

    import remat

    graph = remat.Graph.load("graph.json")
    plan = graph.plan("8GB")
    print(plan.peak_bytes, plan.total_cost)
    plan.report("page.html")

A budget is a number of bytes or a text such as "64KiB", "8GB" (powers of 1000) or "1.5GiB" (powers of 1024).

Every failure is an exception with the library's own sentence; see `remat.errors`. An object may be used by several threads:
calls on it wait for one another, and Python runs meanwhile. Objects that were made from one another, such as a graph and
its plans, share that queue; others work at the same time.
"""

from ._library import version as __version__
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
from .graph_plans import GraphCurve, GraphPlace, GraphPlan, GraphPlanFigures, GraphPoint, GraphStep
from .graphs import Graph, GraphAction, GraphFigures, GraphTensor
from .reports import Report
from .units import format_size, parse_size

__all__ = [
    "BudgetError",
    "CheckError",
    "DivergedError",
    "Error",
    "FileError",
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
    "OutOfMemoryError",
    "RematWarning",
    "Report",
    "Status",
    "__version__",
    "format_size",
    "parse_size",
]
