"""Running trained models.

    predictor = remat.Predictor(model, "weights.safetensors")
    logits = predictor.predict(images)
"""

from __future__ import annotations

from typing import Any, List, Optional

import numpy

from . import samples
from ._callbacks import Callbacks
from ._convert import PathLike, array_pointer, borrowed_array, c_path, c_text, options, py_text, written
from ._handles import Handle
from ._library import ffi, lib
from ._train_options import TrainOptions
from .models import Model
from .samples import SampleFunction


class Predictor:
    """A compiled model with the weights of a file.

    Args:
        model: it must be compiled.
        weights: the file that `Trainer.save` wrote.
        kernels, threads, batch_size, seed, device: as for `remat.Trainer`.
        data_path: read the samples from this file instead of the model's.
        labels_path: with `data_path`: the file of the labels.
        sample, samples: the caller's own samples, as for `remat.Trainer`. `predict` needs none of them.
    """

    def __init__(
        self,
        model: Model,
        weights: PathLike,
        *,
        kernels: Optional[str] = None,
        threads: int = 0,
        batch_size: Optional[int] = None,
        seed: Optional[int] = None,
        data_path: Optional[PathLike] = None,
        labels_path: Optional[PathLike] = None,
        sample: Optional[SampleFunction] = None,
        samples: int = 0,
        device: Optional[str] = None,
    ) -> None:
        self._model = model
        self._options = TrainOptions(
            model,
            needs_labels=False,
            kernels=kernels,
            threads=threads,
            batch_size=batch_size,
            seed=seed,
            data_path=data_path,
            labels_path=labels_path,
            sample=sample,
            samples=samples,
            device=device,
        )
        self._batch_size = batch_size or model.batch_size
        made = ffi.new("remat_predictor **")
        with self._options.callbacks:
            model._handle.call(lib.remat_predictor_create, c_path(weights), self._options.struct, made)
        self._handle = Handle(model._handle.context, made[0], lib.remat_predictor_destroy, model._handle)

    def __repr__(self) -> str:
        state = "closed" if self._handle.closed else f"batches of {self.batch_size}"
        return f"<remat.Predictor: {state}>"

    def __enter__(self) -> Predictor:
        return self

    def __exit__(self, *_exception: Any) -> None:
        self.close()

    def close(self) -> None:
        """Releases all memory now, unless arrays of `run_batch` or `run_samples` are still in use."""
        self._handle.close()

    @property
    def model(self) -> Model:
        """The model."""
        return self._model

    @property
    def batch_size(self) -> int:
        """How many samples run at once."""
        return self._batch_size

    # ---- arrays ----

    def predict(self, inputs: Any) -> numpy.ndarray:
        """The output for any number of samples: an array of the shape (samples, channels, height, width).

        Args:
            inputs: an array for each input layer (a list if there are several); the first dimension counts samples.
        """
        arrays = samples.as_inputs(inputs, self._model)
        outputs: List[numpy.ndarray] = []
        for first in range(0, len(arrays[0]), self._batch_size):
            rows = [array[first : first + self._batch_size] for array in arrays]
            count = len(rows[0])
            # A last batch that is not whole is filled with its last sample.
            fill = self._batch_size - count
            rows = [numpy.concatenate([part, numpy.repeat(part[-1:], fill, axis=0)]) if fill else part for part in rows]
            outputs.append(self._run(rows)[:count].copy())
        return numpy.concatenate(outputs)

    def run_batch(self, inputs: Any) -> numpy.ndarray:
        """The output for exactly one batch, without a copy: the array is valid until the next run."""
        arrays = samples.as_inputs(inputs, self._model)
        if len(arrays[0]) != self._batch_size:
            raise ValueError(f"a batch has {self._batch_size} samples, and {len(arrays[0])} were given")
        return self._run(arrays)

    def _run(self, arrays: List[numpy.ndarray]) -> numpy.ndarray:
        pointers = ffi.new("const void *[]", [array_pointer(array, "const void *") for array in arrays])
        prediction = ffi.new("remat_prediction *")
        self._handle.call(lib.remat_predictor_run_sized, pointers, prediction, ffi.sizeof(prediction[0]))
        return self._values(prediction)

    def _values(self, prediction: Any) -> numpy.ndarray:
        return borrowed_array(self._handle, prediction.values, (prediction.batch, *prediction.shape), "float32")

    # ---- samples of the model's data ----

    @property
    def sample_count(self) -> int:
        """How many samples the data has: all of them, training samples first."""
        with self._options.callbacks, self._handle.context:
            return lib.remat_predictor_samples(self._handle.pointer)

    def run_samples(self, first: int = 0) -> numpy.ndarray:
        """The output for the samples from `first` on: a batch, or fewer if fewer are left.

        It is not copied: the array is valid until the next run.
        """
        prediction = ffi.new("remat_prediction *")
        with self._options.callbacks:
            self._handle.call(
                lib.remat_predictor_run_samples_sized, first, prediction, ffi.sizeof(prediction[0])
            )
        return self._values(prediction)

    def row(self, sample: int) -> int:
        """The number of a sample's row, from 1, if samples are rows of a file."""
        with self._handle.context:
            return lib.remat_predictor_row(self._handle.pointer, sample)

    def file(self, sample: int) -> Optional[str]:
        """The path of a sample's file, if every sample has its own, as images have."""
        with self._handle.context:
            return py_text(lib.remat_predictor_file(self._handle.pointer, sample)) or None

    @property
    def classes(self) -> List[str]:
        """The names of the classes as the training data had them, or their numbers. Empty without classes."""
        predictor = self._handle.pointer
        count = lib.remat_predictor_class_count(predictor)
        return [py_text(lib.remat_predictor_class_name(predictor, i)) or str(i) for i in range(count)]

    def table(self, samples: int = 0) -> str:
        """A CSV table of the predictions for the first `samples` samples; 0 for all."""
        predictor = self._handle.pointer
        with self._options.callbacks:
            return written(
                self._handle.context, lambda stream: lib.remat_predictor_write_table(predictor, samples, stream)
            )

    def save_table(self, path: PathLike, samples: int = 0) -> None:
        """Writes that table to a file, which is replaced only when everything was written."""
        with self._options.callbacks:
            self._handle.call(lib.remat_predictor_save_table, samples, c_path(path))

    # ---- texts ----

    def generate(self, prompt: str = "", count: int = 200, temperature: float = 0.8, seed: int = 0) -> bytes:
        """Continues a text with a model of bytes.

        Args:
            count: bytes to generate.
            temperature: 0 for always the most likely byte.
        """
        chosen = options("generate_options")
        text = c_text(prompt)
        chosen.prompt, chosen.count, chosen.temperature, chosen.seed = text, count, temperature, seed
        made = bytearray()
        callbacks = Callbacks()
        emit = callbacks.make("void(*)(void *, unsigned char)", lambda _user, byte: made.append(byte))
        with callbacks:
            self._handle.call(lib.remat_predictor_generate, chosen, emit, ffi.NULL)
        return bytes(made)
