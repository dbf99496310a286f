"""Texts, structs, arrays and streams between Python and C."""

from __future__ import annotations

import os
from typing import Any, Callable, Iterable, List, Type, TypeVar, Union

import numpy

from ._handles import Context, Handle
from ._library import ffi, lib, libc

PathLike = Union[str, "os.PathLike[str]"]
Size = Union[int, str]


# ---- texts ----


def c_text(text: Union[str, None]):
    """A text for C; NULL for None. The result must be kept while C uses it."""
    if text is None:
        return ffi.NULL
    encoded = text.encode()
    if b"\0" in encoded:
        raise ValueError("a text for the library must not contain the character NUL")
    return ffi.new("char[]", encoded)


def c_path(path: PathLike):
    """A path for C."""
    encoded = os.fsencode(os.fspath(path))
    if b"\0" in encoded:
        raise ValueError("a path must not contain the character NUL")
    return ffi.new("char[]", encoded)


def c_texts(texts: Iterable[str]):
    """A list of texts that ends with NULL, and what keeps it alive."""
    kept = [c_text(text) for text in texts]
    return ffi.new("const char *[]", [*kept, ffi.NULL]), kept


def py_text(pointer) -> str:
    """A text of C; "" for NULL."""
    return ffi.string(pointer).decode(errors="replace") if pointer else ""


# ---- structs ----

Record = TypeVar("Record")


def record(kind: Type[Record], struct) -> Record:
    """A named tuple with the members of a C struct that have the names of its fields."""
    return kind(*(_member(getattr(struct, field)) for field in kind._fields))  # type: ignore[attr-defined]


def _member(value) -> Any:
    if not isinstance(value, ffi.CData):
        return value
    kind = ffi.typeof(value)
    if kind.kind == "array":
        return tuple(_member(element) for element in value)
    if kind.kind == "pointer" and kind.item.cname == "char":
        return py_text(value)
    raise TypeError(f"a member of type {kind.cname} has no Python value")


def options(name: str):
    """An options struct of C with its defaults."""
    struct = ffi.new(f"remat_{name} *")
    getattr(lib, f"remat_{name}_init_sized")(struct, ffi.sizeof(struct[0]))
    return struct


# ---- arrays ----


class _Borrowed:
    """Memory of C, for numpy. Whoever has an array of it keeps the C object that owns the memory."""

    def __init__(self, owner: Handle, pointer, shape, dtype: str, writable: bool):
        self._owner = Handle(owner.context, None, None, owner)
        self.__array_interface__ = {
            "data": (int(ffi.cast("uintptr_t", pointer)), not writable),
            "shape": shape,
            "typestr": numpy.dtype(dtype).str,
            "version": 3,
        }


def borrowed_array(owner: Handle, pointer, shape, dtype: str, writable: bool = False) -> numpy.ndarray:
    """An array that lies in memory of `owner`, without a copy."""
    if not pointer or 0 in shape:
        return numpy.empty(shape, dtype)
    return numpy.asarray(_Borrowed(owner, pointer, tuple(shape), dtype, writable))


def array_pointer(array: numpy.ndarray, c_type: str):
    """The memory of a contiguous array, for C."""
    return ffi.cast(c_type, array.ctypes.data)


# ---- streams ----


def written(context: Context, write: Callable) -> str:
    """What a function that writes to a stream writes. `write` gets the stream and returns a status."""
    text, count = ffi.new("char **"), ffi.new("size_t *")
    stream = libc.open_memstream(text, count)
    if not stream:
        raise MemoryError("no memory for a stream")
    try:
        context.call(write, stream)
    finally:
        libc.fclose(stream)
        result = ffi.unpack(text[0], count[0]) if text[0] else b""
        libc.free(text[0])
    return result.decode(errors="replace")


def reading(context: Context, content: Union[str, bytes], read: Callable) -> None:
    """Lets a function read a text as a stream. `read` gets the stream and returns a status."""
    encoded = content.encode() if isinstance(content, str) else bytes(content)
    # fmemopen refuses 0 bytes; a line end is as empty to every reader.
    buffer = ffi.from_buffer(encoded or b"\n")
    stream = libc.fmemopen(buffer, len(buffer), b"r")
    if not stream:
        raise MemoryError("no memory for a stream")
    try:
        context.call(read, stream)
    finally:
        libc.fclose(stream)


def reading_file(context: Context, path: PathLike, read: Callable) -> None:
    """The same with a file. FileError: it cannot be opened."""
    made = ffi.new("FILE **")
    context.call(lib.remat_input_open, context.pointer, c_path(path), made)
    try:
        context.call(read, made[0])
    finally:
        libc.fclose(made[0])


# ---- sizes ----


def c_bytes(context: Context, size: Size) -> int:
    """A number of bytes: an int, or a text such as "8GB" or "1.5GiB"."""
    if isinstance(size, str):
        count = ffi.new("uint64_t *")
        context.call(lib.remat_size_parse, context.pointer, c_text(size), count)
        return count[0]
    count = int(size.__index__())
    if count < 0:
        raise ValueError(f"a number of bytes cannot be negative, and this is {count}")
    return count


def numbers(values: Iterable[int]) -> List[int]:
    """Whole numbers, whatever type they come in."""
    return [int(value.__index__()) for value in values]
