"""Curves of chains: the best plans for all budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ._convert import py_text, record
from ._handles import Handle
from ._library import ffi, lib
from ._sequences import LazySequence
from .plans import Plan

if TYPE_CHECKING:
    from .profiles import Profile


class CurvePoint(NamedTuple):
    """A point of a curve. For a budget, the plan is that of the last point whose peak fits."""

    peak_bytes: int
    total_cost: int


class Curve(LazySequence[CurvePoint]):
    """The curve of cost over memory: a list of points. The first has the smallest peak, the last the lowest cost."""

    def __init__(self, profile: Profile, handle: Handle) -> None:
        super().__init__(lib.remat_sweep_count(handle.pointer), self._point)
        self._profile = profile
        self._handle = handle

    def _point(self, position: int) -> CurvePoint:
        point = ffi.new("remat_sweep_point *")
        self._handle.call(lib.remat_sweep_get_point_sized, position, point, ffi.sizeof(point[0]))
        return record(CurvePoint, point)

    @property
    def profile(self) -> Profile:
        """The profile that the curve is of."""
        return self._profile

    @property
    def knee(self) -> int:
        """The position of the point where the curve bends most."""
        return lib.remat_sweep_knee(self._handle.pointer)

    @property
    def method(self) -> str:
        """The method that found the curve: "exhaustive" or "intervals"."""
        return py_text(lib.remat_sweep_method(self._handle.pointer))

    def plan(self, position: int) -> Plan:
        """The plan of a point."""
        position = range(len(self))[position]
        made = ffi.new("remat_plan **")
        self._handle.call(lib.remat_sweep_plan, position, made)
        return self._profile._adopt_plan(made[0])
