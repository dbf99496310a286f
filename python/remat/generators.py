"""Generating text with language models.

    generator = remat.Generator("Qwen2.5-0.5B", settings={"model.adapter": "adapter"})
    print(generator.write("Q: What is a GEMM? A:", stops=["Q:"]))
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, NamedTuple, Optional

import numpy

from ._callbacks import Callbacks
from ._convert import PathLike, array_pointer, borrowed_array, c_path, c_text, c_texts, options, record
from ._handles import Context, Handle
from ._library import ffi, lib
from .models import setting_texts


class GeneratorFigures(NamedTuple):
    """What a generator allocated.

    Attributes:
        cache_bytes: of keys and values.
        arena_bytes: of everything that lives only within a run.
        total_bytes: the sum, and a few small areas.
        cache: tokens that fit.
        vocabulary: logits of a token.
        mapped_bytes: of the weights: those that are mapped from their file (`"model.frozen": "keep"`), and not copied.
    """

    weight_bytes: int
    cache_bytes: int
    arena_bytes: int
    total_bytes: int
    cache: int
    vocabulary: int
    mapped_bytes: int


class Generator:
    """Continues texts with a model in Hugging Face's layout. All memory is allocated when it is made.

    Args:
        folder: of the model.
        settings: as for `Model.load`, such as {"model.adapter": "adapter", "model.frozen": "int4"}.
        weights: a file or folder with the weights; None: the folder of the model.
        cache: the longest text in tokens, prompt included. 0: 1024, or the length of the model if that is less.
        chunk: tokens of a prompt that run together.
        threads: 0 for all cores.
        kernels: as for `remat.Trainer`.
    """

    def __init__(
        self,
        folder: PathLike,
        *,
        settings: Optional[Dict[str, Any]] = None,
        weights: Optional[PathLike] = None,
        cache: int = 0,
        chunk: int = 32,
        threads: int = 0,
        kernels: Optional[str] = None,
    ) -> None:
        context, made = Context(), ffi.new("remat_generator **")
        chosen = options("generator_options")
        changes, kept = c_texts(setting_texts(settings))
        path, name = ffi.NULL if weights is None else c_path(weights), c_text(kernels)
        chosen.settings, chosen.weights, chosen.kernels = changes, path, name
        chosen.cache, chosen.chunk, chosen.threads = cache, chunk, threads
        context.call(lib.remat_generator_create, context.pointer, c_path(folder), chosen, made)
        del kept
        self._handle = Handle(context, made[0], lib.remat_generator_destroy)

    def __repr__(self) -> str:
        if self._handle.closed:
            return "<remat.Generator: closed>"
        return f"<remat.Generator: {self.figures.total_bytes} bytes, cache of {self.figures.cache} tokens>"

    def __enter__(self) -> Generator:
        return self

    def __exit__(self, *_exception: Any) -> None:
        self.close()

    def close(self) -> None:
        """Releases all memory now."""
        self._handle.close()

    @property
    def figures(self) -> GeneratorFigures:
        """What it allocated."""
        figures = ffi.new("remat_generator_figures *")
        with self._handle.context:
            lib.remat_generator_get_figures_sized(self._handle.pointer, figures, ffi.sizeof(figures[0]))
        return record(GeneratorFigures, figures)

    # ---- texts ----

    def write(
        self,
        prompt: str = "",
        *,
        chat: bool = False,
        count: int = 200,
        temperature: float = 0.8,
        top_k: int = 40,
        top_p: float = 1.0,
        seed: int = 0,
        stops: Iterable[str] = (),
        emit: Optional[Callable[[str], Any]] = None,
    ) -> str:
        """Continues the prompt, and returns what it wrote.

        Args:
            chat: the prompt is a user's message, which the chat template of the model writes.
            count: tokens to write at most.
            temperature: 0 for always the most likely token.
            top_k: only so many of the most likely tokens are drawn from; 0 for all.
            top_p: of these, only the most likely whose chances add up to this.
            stops: texts that end it, which are not written.
            emit: gets every piece of the text as soon as it is known. False ends the text.
        """
        chosen, text = options("text_options"), c_text(prompt)
        ends, kept = c_texts(stops)
        chosen.prompt, chosen.chat, chosen.count, chosen.stops = text, chat, count, ends
        chosen.temperature, chosen.top_k, chosen.top_p, chosen.seed = temperature, top_k, top_p, seed
        pieces = []

        def take(_user: Any, piece: Any, size: int) -> bool:
            pieces.append(ffi.unpack(piece, size).decode(errors="replace") if size else "")
            return emit is None or emit(pieces[-1]) is not False

        callbacks = Callbacks()
        taken = callbacks.make("_Bool(*)(void *, const char *, size_t)", take, on_error=False)
        with callbacks:
            self._handle.call(lib.remat_generator_write, chosen, taken, ffi.NULL)
        del kept
        return "".join(pieces)

    # ---- tokens ----

    def feed(self, ids: Any) -> numpy.ndarray:
        """Appends tokens to the text so far. Returns the logits of the token that follows."""
        numbers, logits = numpy.ascontiguousarray(ids, "int32"), ffi.new("const float **")
        with self._handle.context:
            pointer = array_pointer(numbers, "const int32_t *")
            self._handle.call(lib.remat_generator_feed, pointer, len(numbers), logits)
            return borrowed_array(self._handle, logits[0], (self.figures.vocabulary,), "float32").copy()

    def clear(self) -> None:
        """Forgets the text."""
        with self._handle.context:
            lib.remat_generator_clear(self._handle.pointer)
