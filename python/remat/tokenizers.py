"""Tokenizers of language models, and samples for fine-tuning.

    tokenizer = remat.Tokenizer.load("Qwen2.5-0.5B")
    ids = tokenizer.encode("Hello world")
    text = tokenizer.decode(ids)
"""

from __future__ import annotations

from typing import Any, Iterable, NamedTuple, Optional

import numpy

from ._convert import PathLike, array_pointer, borrowed_array, c_path, c_text, options, py_text, record, written
from ._handles import Context, Handle
from ._library import ffi, lib
from ._sequences import LazySequence


class Tokenizer:
    """Turns a text into the numbers that a language model reads, and back. Read one with `load`, or `train` one.

    Ids and texts are those of the library `tokenizers`; docs/tokenizers.md says which tokenizers are read.
    """

    _handle: Handle

    def __init__(self) -> None:
        raise TypeError("a tokenizer is made by Tokenizer.load or Tokenizer.train")

    @classmethod
    def _wrap(cls, context: Context, pointer: Any) -> Tokenizer:
        tokenizer = cls.__new__(cls)
        tokenizer._handle = Handle(context, pointer, lib.remat_tokenizer_destroy)
        return tokenizer

    @classmethod
    def load(cls, path: PathLike) -> Tokenizer:
        """Reads a tokenizer.json, or that of a folder. FileError, InputFileError."""
        context, made = Context(), ffi.new("remat_tokenizer **")
        context.call(lib.remat_tokenizer_load, context.pointer, c_path(path), made)
        return cls._wrap(context, made[0])

    @classmethod
    def train(
        cls,
        paths: Iterable[PathLike],
        vocabulary: int = 1000,
        *,
        least: int = 2,
        special: Iterable[str] = ("<|endoftext|>",),
        pattern: Optional[str] = None,
    ) -> Tokenizer:
        """Trains a byte-level tokenizer on the texts in these files.

        Args:
            vocabulary: the number of tokens, including the 256 bytes and special tokens.
            least: pairs that occur less often are not merged.
            special: special tokens; their ids are 0, 1 and so on.
            pattern: the regular expression that cuts texts into words; None: that of GPT-2.
        """
        context, made = Context(), ffi.new("remat_tokenizer **")
        chosen = options("tokenizer_options")
        kept = [c_path(path) for path in paths]
        names, cut = c_text(" ".join(special)), c_text(pattern)
        chosen.vocabulary, chosen.least, chosen.special, chosen.pattern = vocabulary, least, names, cut
        files = ffi.new("const char *[]", kept)
        context.call(lib.remat_tokenizer_train, context.pointer, files, len(kept), chosen, made)
        return cls._wrap(context, made[0])

    def __repr__(self) -> str:
        return f"<remat.Tokenizer: {len(self)} tokens>"

    def __len__(self) -> int:
        """One more than the largest id: how many rows the embedding of a model needs at least."""
        with self._handle.context:
            return lib.remat_tokenizer_size(self._handle.pointer)

    # ---- texts ----

    def encode(self, text: str, special: bool = True) -> numpy.ndarray:
        """The ids of a text, as an array of int32.

        Args:
            special: with the special tokens that the tokenizer puts around a text.
        """
        encoded = text.encode()
        ids, count = ffi.new("const int32_t **"), ffi.new("size_t *")
        with self._handle.context:
            self._handle.call(lib.remat_tokenizer_encode, encoded, len(encoded), special, ids, count)
            return borrowed_array(self._handle, ids[0], (count[0],), "int32").copy()

    def decode(self, ids: Any, special: bool = False) -> str:
        """The text of ids.

        Args:
            special: with the texts of special tokens.
        """
        numbers = numpy.ascontiguousarray(ids, "int32")
        text, count = ffi.new("const char **"), ffi.new("size_t *")
        with self._handle.context:
            pointer = array_pointer(numbers, "const int32_t *")
            self._handle.call(lib.remat_tokenizer_decode, pointer, len(numbers), special, text, count)
            return ffi.unpack(text[0], count[0]).decode(errors="replace") if count[0] else ""

    # ---- tokens ----

    def token(self, id: int) -> str:
        """A token as tokenizer.json has it. IndexError: there is none."""
        with self._handle.context:
            found = lib.remat_tokenizer_token(self._handle.pointer, id)
            if not found:
                raise IndexError(f"there is no token {id}")
            return py_text(found)

    def find(self, token: str) -> Optional[int]:
        """The id of a token; None if there is none."""
        with self._handle.context:
            found = lib.remat_tokenizer_find(self._handle.pointer, c_text(token))
        return None if found < 0 else found

    def is_special(self, id: int) -> bool:
        """Whether an id is a special token."""
        with self._handle.context:
            return lib.remat_tokenizer_is_special(self._handle.pointer, id) != 0

    # ---- files ----

    def json(self) -> str:
        """A tokenizer that was trained, as the text of a tokenizer.json."""
        return written(self._handle.context, lambda stream: lib.remat_tokenizer_write(self._handle.pointer, stream))

    def save(self, path: PathLike) -> None:
        """Writes a tokenizer that was trained. The file is replaced only when everything was written."""
        self._handle.call(lib.remat_tokenizer_save, c_path(path))

    def samples(self, path: PathLike, length: int = 256, pack: bool = True) -> TextSamples:
        """Reads samples for fine-tuning, a JSON object on every line (docs/tokenizers.md). InputFileError names the line.

        Args:
            length: tokens of a row.
            pack: whether several samples share a row.
        """
        chosen, made = options("samples_options"), ffi.new("remat_samples **")
        chosen.length, chosen.pack = length, pack
        self._handle.call(lib.remat_samples_load, c_path(path), chosen, made)
        return TextSamples(self._handle, made[0], length)


class SamplesFigures(NamedTuple):
    """What is in a file of samples.

    Attributes:
        samples: in the file.
        truncated: of these, cut to the length.
        dropped: of these, without a token to learn.
        tokens: inputs in all rows, without those after the last sample of a row.
        learned: labels that are not -1.
    """

    samples: int
    truncated: int
    dropped: int
    rows: int
    tokens: int
    learned: int


class SamplesRow(NamedTuple):
    """A row of tokens: arrays of int32, which belong to the samples.

    Attributes:
        labels: the token that follows each of them; -1 where nothing is learned.
        positions: counted from 0 in every sample.
        segments: the number of the sample in the row; -1 after the last.
    """

    ids: numpy.ndarray
    labels: numpy.ndarray
    positions: numpy.ndarray
    segments: numpy.ndarray


class TextSamples:
    """The samples that `Tokenizer.samples` read."""

    def __init__(self, parent: Handle, pointer: Any, length: int) -> None:
        self._handle = Handle(parent.context, pointer, lib.remat_samples_destroy, parent)
        self._length = length

    def __repr__(self) -> str:
        return f"<remat.TextSamples: {self.figures.samples} samples in {self.figures.rows} rows>"

    @property
    def figures(self) -> SamplesFigures:
        """How many samples, rows and tokens there are."""
        figures = ffi.new("remat_samples_figures *")
        with self._handle.context:
            lib.remat_samples_figures_get_sized(self._handle.pointer, figures, ffi.sizeof(figures[0]))
        return record(SamplesFigures, figures)

    @property
    def rows(self) -> LazySequence[SamplesRow]:
        """All rows."""
        return LazySequence(self.figures.rows, self._row)

    def _row(self, position: int) -> SamplesRow:
        row = ffi.new("remat_samples_row *")
        self._handle.call(lib.remat_samples_row_get_sized, position, row, ffi.sizeof(row[0]))
        parts = (getattr(row, name) for name in SamplesRow._fields)
        return SamplesRow(*(borrowed_array(self._handle, part, (self._length,), "int32") for part in parts))
