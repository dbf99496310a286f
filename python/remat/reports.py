"""Reports: one HTML page about profiles, plans, trainers and runs. It needs no network."""

from __future__ import annotations

from typing import Union

from . import errors
from ._convert import PathLike, c_path, c_text, options, written
from ._handles import Context, Handle
from ._library import ffi, lib
from .graph_plans import GraphPlan
from .plans import Plan
from .profiles import Profile
from .trainers import Trainer


class Report:
    """A page that shows what was added to it, side by side.

    report = remat.Report()
    report.add("kept", graph.plan())
    report.add("8 GB", graph.plan("8GB"))
    report.save("page.html")
    """

    def __init__(self) -> None:
        context = Context()
        made = ffi.new("remat_report **")
        context.call(lib.remat_report_create, context.pointer, made)
        self._handle = Handle(context, made[0], lib.remat_report_destroy)

    def __len__(self) -> int:
        return lib.remat_report_count(self._handle.pointer)

    def __repr__(self) -> str:
        return f"<remat.Report: {len(self)} parts>"

    def add(
        self,
        label: str,
        item: Union[GraphPlan, Plan, Profile, Trainer],
        curve: bool = True,
        arena: bool = True,
        allow_lossy: bool = False,
        threads: int = 0,
    ) -> None:
        """Adds a profile, a plan, the plan of a graph, or a trainer. Everything is copied.

        Args:
            label: its name on the page.
            item: what the page shows.
            curve: whether the whole curve of cost over memory is found and shown.
            arena: whether the offsets of tensors are found and shown.
            allow_lossy: whether the curve may use modes that are not lossless.
            threads: for the curve; 0 for all cores.
        """
        for kind, function in _ADDERS.items():
            if isinstance(item, kind):
                break
        else:
            raise TypeError(f"a report shows no {type(item).__name__}")
        chosen = options("report_options")
        chosen.curve, chosen.arena, chosen.allow_lossy, chosen.threads = curve, arena, allow_lossy, threads
        # Nobody else may use either object meanwhile; what went wrong is on the context of one of them.
        with item._handle.context as shown, self._handle.context as own:
            status = function(self._handle.pointer, c_text(label), item._handle.pointer, chosen)
            if status != lib.REMAT_OK:
                raised = lib.remat_context_error(own.pointer).status == status
                raise errors.from_context(status, own.pointer if raised else shown.pointer)

    def add_run(self, label: str, path: PathLike) -> None:
        """Adds the log of a training: its losses, and predicted figures beside measured ones."""
        self._handle.call(lib.remat_report_add_run, c_text(label), c_path(path))

    def to_html(self) -> str:
        """The page."""
        return written(self._handle.context, lambda stream: lib.remat_report_write(self._handle.pointer, stream))

    def to_json(self) -> str:
        """The data of the page alone, in the format remat-report."""
        return written(self._handle.context, lambda stream: lib.remat_report_write_json(self._handle.pointer, stream))

    def save(self, path: PathLike) -> None:
        """Writes the page to a file, which is replaced only when everything was written."""
        self._handle.call(lib.remat_report_save, c_path(path))

    def save_json(self, path: PathLike) -> None:
        """Writes the data of the page alone to a file."""
        self._handle.call(lib.remat_report_save_json, c_path(path))


_ADDERS = {
    GraphPlan: lib.remat_report_add_graph_plan,
    Plan: lib.remat_report_add_plan,
    Profile: lib.remat_report_add_profile,
    Trainer: lib.remat_report_add_trainer,
}
