"""Lists whose elements are read from C when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Callable, Generic, TypeVar

Element = TypeVar("Element")


class LazySequence(Sequence, Generic[Element]):
    """A read-only list: `len`, indices, slices, `in` and iteration work as usual."""

    def __init__(self, count: int, element: Callable[[int], Element]) -> None:
        self._positions = range(count)
        self._element = element

    def __len__(self) -> int:
        return len(self._positions)

    def __getitem__(self, position):
        if isinstance(position, slice):
            return [self._element(i) for i in self._positions[position]]
        return self._element(self._positions[position])

    def __repr__(self) -> str:
        return repr(list(self))
