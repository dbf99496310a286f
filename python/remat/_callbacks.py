"""Python functions that C calls. An exception ends the call of C, and is raised again when it has returned."""

from __future__ import annotations

from typing import Any, Callable, List

from ._library import ffi, lib


class Callbacks:
    """The callbacks of one call of C, and the first exception that one of them raised.

        callbacks = Callbacks()
        function = callbacks.make("remat_step_fn", visit, on_error=lib.REMAT_INTERNAL)
        with callbacks:
            handle.call(lib.remat_plan_walk, function, ffi.NULL)

    KeyboardInterrupt is such an exception: it ends a training after the step that runs.
    """

    def __init__(self) -> None:
        self._kept: List[Any] = []
        self._raised: List[BaseException] = []

    def make(self, c_type: str, function: Callable, on_error: Any = None) -> Any:
        """A C function that calls `function`. It returns `on_error` from the first exception on, without calling it."""
        raised = self._raised

        def guarded(*arguments: Any) -> Any:
            if raised:
                return on_error
            try:
                return function(*arguments)
            except BaseException as error:  # it is raised again as soon as C has returned
                raised.append(error)
                return on_error

        # An interrupt between the lines of `guarded` is kept as well.
        def outside(_kind: Any, error: BaseException, _traceback: Any) -> None:
            raised.append(error)

        made = ffi.callback(c_type, guarded, error=on_error, onerror=outside)
        self._kept.append(made)
        return made

    def forget(self, made: List[Any]) -> None:
        """Lets callbacks go that C does not call any more."""
        self._kept = [kept for kept in self._kept if kept not in made]

    def __enter__(self) -> Callbacks:
        self._raised.clear()
        return self

    def __exit__(self, _kind: Any, error: Any, _traceback: Any) -> None:
        if self._raised:
            raised = self._raised[0]
            self._raised.clear()
            raise raised from None


def status_of(function: Callable) -> Callable:
    """A function that returns REMAT_OK to C, whatever `function` returns."""

    def called(*arguments: Any) -> int:
        function(*arguments)
        return lib.REMAT_OK

    return called
