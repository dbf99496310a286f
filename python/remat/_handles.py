"""Objects of the C library as Python holds them: who outlives whom, and one thread at a time.

A `Context` has the lock under which its objects are used. Calls release the interpreter's lock meanwhile, so that
objects of different contexts work at the same time. A `Handle` is one C object. It is destroyed when Python drops it, but
never before what was made from it, in whatever order the garbage collector drops them.
"""

from __future__ import annotations

import sys
import threading
import warnings
from typing import Any, Callable, List, Optional

from . import errors
from ._library import ffi, lib


class _Record:
    """A C object, and how many others depend on it. It is destroyed when it is dropped and nothing depends on it."""

    __slots__ = ("pointer", "destroy", "parent", "dependents", "dropped")

    def __init__(self, pointer, destroy: Optional[Callable], parent: Optional[_Record]):
        self.pointer, self.destroy, self.parent = pointer, destroy, parent
        self.dependents = 0
        self.dropped = False
        if parent is not None:
            parent.dependents += 1

    def drop(self) -> None:
        self.dropped = True
        record: Optional[_Record] = self
        while record is not None and record.dropped and record.dependents == 0:
            if record.destroy is not None:
                record.destroy(record.pointer)
            record = record.parent
            if record is not None:
                record.dependents -= 1


class Context:
    """A context of the library. `with context:` lets only this thread use its objects."""

    def __init__(self) -> None:
        made = ffi.new("remat_context **")
        status = lib.remat_context_create_sized(ffi.NULL, ffi.sizeof("remat_allocator"), made)
        if status != lib.REMAT_OK:
            raise errors.OutOfMemoryError("out of memory")
        self._record = _Record(made[0], lib.remat_context_destroy, None)
        self._lock = threading.RLock()
        self._depth = 0
        self._dropped: List[_Record] = []  # to be destroyed when nobody uses the context
        heard: List[str] = []

        def on_warning(_user, message) -> None:
            heard.append(ffi.string(message).decode(errors="replace"))

        self._warnings = heard
        self._on_warning = ffi.callback("remat_warning_fn", on_warning)
        lib.remat_context_on_warning(made[0], self._on_warning, ffi.NULL)

    def __del__(self) -> None:
        if hasattr(self, "_record") and not sys.is_finalizing():
            self._record.drop()

    @property
    def pointer(self):
        return self._record.pointer

    def __enter__(self) -> Context:
        self._lock.acquire()
        self._depth += 1
        return self

    def __exit__(self, *_exception) -> None:
        messages: List[str] = []
        if self._depth == 1:
            self._destroy_dropped()
            messages = self._warnings[:]
            self._warnings.clear()
        self._depth -= 1
        self._lock.release()
        for message in messages:
            warnings.warn(message, errors.RematWarning, stacklevel=_caller_level())

    def _destroy_dropped(self) -> None:
        while self._dropped:
            self._dropped.pop().drop()

    def drop(self, record: _Record) -> None:
        """Destroys a C object now, or when the thread that uses the context has finished its call."""
        self._dropped.append(record)
        if self._lock.acquire(blocking=False):
            try:
                if self._depth == 0:
                    self._destroy_dropped()
            finally:
                self._lock.release()

    def call(self, function: Callable, *arguments: Any) -> None:
        """Calls a function that returns a status, and raises what went wrong."""
        with self:
            status = function(*arguments)
            if status != lib.REMAT_OK:
                raise errors.from_context(status, self.pointer)


class Handle:
    """A C object. `parent` is what it was made from; `destroy` None: it belongs to the parent."""

    __slots__ = ("context", "_record", "_closed")
    _record: _Record

    def __init__(self, context: Context, pointer, destroy: Optional[Callable], parent: Optional[Handle] = None):
        self.context = context
        self._closed = False
        with context:
            self._record = _Record(pointer, destroy, context._record if parent is None else parent._record)

    def __del__(self) -> None:
        if not sys.is_finalizing():
            self.close()

    def __reduce__(self):
        raise TypeError("objects of the C library can be neither copied nor pickled")

    @property
    def pointer(self):
        if self._closed:
            raise ValueError("this object was closed")
        return self._record.pointer

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """Lets the C object go. What was made from it stays valid, and keeps its memory meanwhile."""
        if not self._closed:
            self._closed = True
            self.context.drop(self._record)

    def call(self, function: Callable, *arguments: Any) -> None:
        """Calls a function on this object that returns a status, and raises what went wrong."""
        self.context.call(function, self.pointer, *arguments)


def _caller_level() -> int:
    """The stack level, counted from the caller of this function, of the code that called this package."""
    package = __name__.rpartition(".")[0]
    frame: Any = sys._getframe(1)
    level = 1
    while frame.f_back is not None and (frame.f_globals.get("__name__", "") + ".").startswith(package + "."):
        frame = frame.f_back
        level += 1
    return level
