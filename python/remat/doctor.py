"""What this build of the library uses on this machine."""

from __future__ import annotations

from typing import Dict, NamedTuple

from ._convert import py_text, record
from ._handles import Context
from ._library import ffi, lib, library_path, version


class Doctor(NamedTuple):
    """What `remat.doctor()` finds.

    Attributes:
        library_path: the shared library in use.
        kernels: the instruction set of the fast kernels, such as "avx2".
        compiler: the compiler that built the library.
        libraries: other libraries that some files need, and whether they can be used.
        threads: the default number of threads.
        chart: the chart library inside the pages of reports.
    """

    version: str
    library_path: str
    kernels: str
    compiler: str
    libraries: Dict[str, bool]
    threads: int
    chart: str


class MachineLimits(NamedTuple):
    """What this machine can do at most.

    Attributes:
        flops_per_second: of multiply-adds on registers.
        bytes_per_second: through memory.
        threads: how many ran: the system may allow fewer than were asked for.
        kernels: the instruction set that was measured.
    """

    flops_per_second: float
    bytes_per_second: float
    threads: int
    kernels: str


def measure_limits(threads: int = 0) -> MachineLimits:
    """Measures what this machine can do, in a fraction of a second. `threads` 0: all cores."""
    context, limits = Context(), ffi.new("remat_machine_limits *")
    context.call(lib.remat_measure_limits_sized, context.pointer, threads, limits, ffi.sizeof(limits[0]))
    return record(MachineLimits, limits)


def doctor() -> Doctor:
    """What this build of the library uses on this machine."""
    libraries: Dict[str, bool] = {}
    is_there = ffi.new("bool *")
    while True:
        name = lib.remat_library_name(len(libraries), is_there)
        if not name:
            break
        libraries[py_text(name)] = bool(is_there[0])
    return Doctor(
        version=version,
        library_path=library_path,
        kernels=py_text(lib.remat_kernels_name()),
        compiler=py_text(lib.remat_compiler_name()),
        libraries=libraries,
        threads=lib.remat_default_threads(),
        chart=py_text(lib.remat_chart_name()),
    )
