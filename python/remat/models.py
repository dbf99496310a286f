"""Models: named layers with properties as text, from calls or from an INI file.

    model = remat.Model()
    model.add_layer("input", name="in", input_shape="1:1:784")
    model.add_layer("fully_connected", name="fc1", unit=512, activation="relu")
    model.add_layer("fully_connected", name="out", unit=10)
    model.add_layer("cross_entropy", name="loss")
    model.set(batch_size=32, epochs=10)
    model.set_optimizer("adam", learning_rate=0.001)
    model.compile()

Properties are those of docs/formats.md. A compiled model knows every shape, parameter and byte; `remat.Trainer`
trains it.
"""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Tuple

from ._convert import PathLike, c_path, c_text, c_texts, options, py_text, reading, reading_file, record, written
from ._handles import Context, Handle
from ._library import ffi, lib
from ._sequences import LazySequence

#: The element types of tensors, by the number that C has for them.
DTYPES: Tuple[str, ...] = tuple(
    py_text(lib.remat_dtype_name(number)) for number in range(lib.REMAT_FP32, lib.REMAT_INT4_BLOCKS + 1)
)


class ModelLayer(NamedTuple):
    """A layer of a compiled model. A composite layer, such as attention, is listed as its parts.

    The last five are positions in the order of a training iteration; None if the layer has no such step.

    Attributes:
        output_shape: channels, height and width of one sample.
        parameters: values; those shared with another layer are counted there.
        output_bytes: for the batch; 0 if the output is a view of the input.
        saved_bytes: kept for the backward pass besides inputs and output.
        workspace_bytes: the most that one of its steps needs.
        block: "" if none.
    """

    name: str
    type: str
    output_shape: Tuple[int, int, int]
    parameters: int
    output_bytes: int
    saved_bytes: int
    workspace_bytes: int
    block: str
    forward: Optional[int]
    recompute: Optional[int]
    weight_gradient: Optional[int]
    input_gradient: Optional[int]
    apply: Optional[int]


_STEPS = ("forward", "recompute", "weight_gradient", "input_gradient", "apply")


class SampleField(NamedTuple):
    """An input or the labels of one sample.

    Attributes:
        layer: the input layer; of the labels, the layer that reads them.
        dtype: "fp32", or "int32" for tokens and classes.
        count: how many values.
        shape: of an input: channels, height and width; of the labels 0.
        bound: whole numbers are below it; negative ones are labels to ignore. 0: no limit.
    """

    layer: str
    dtype: str
    count: int  # type: ignore[assignment]
    shape: Tuple[int, int, int]
    bound: int


class Model:
    """A neural network. Build it by calls, or read it with `Model.load`."""

    def __init__(self) -> None:
        context = Context()
        made = ffi.new("remat_model **")
        context.call(lib.remat_model_create, context.pointer, made)
        self._handle = Handle(context, made[0], lib.remat_model_destroy)

    @classmethod
    def _wrap(cls, context: Context, pointer) -> Model:
        model = cls.__new__(cls)
        model._handle = Handle(context, pointer, lib.remat_model_destroy)
        return model

    def __repr__(self) -> str:
        return f"<remat.Model: {len(self.layers)} layers, {self.parameter_count} parameters>"

    # ---- files ----

    @classmethod
    def load(cls, path: PathLike, settings: Optional[Dict[str, Any]] = None) -> Model:
        """Reads a model from an INI file, or from a folder in Hugging Face's layout, and compiles it. FileError, InputFileError.

        Only config.json of a folder is read; `Trainer.load`, `Predictor` and `Generator` read its weights.

        Args:
            settings: changes to the file, such as {"model.batch_size": 8, "fc1.unit": 64}. For a folder also
                {"model.length": 256, "model.lora": "rank=8", "model.frozen": "int4"}.
        """
        if os.path.isdir(path):
            return cls._load_folder(path, settings)
        return cls._read(lambda context, read: reading_file(context, path, read), c_path(path), settings)

    @classmethod
    def _load_folder(cls, path: PathLike, settings: Optional[Dict[str, Any]]) -> Model:
        context, made = Context(), ffi.new("remat_model **")
        changes, kept = c_texts(setting_texts(settings))
        context.call(lib.remat_model_load_with, context.pointer, c_path(path), changes, made)
        del kept
        return cls._wrap(context, made[0])

    @classmethod
    def from_text(cls, text: str, settings: Optional[Dict[str, Any]] = None, name: str = "text") -> Model:
        """The same from the text of such a file.

        `name` stands for it in messages, and its folder is that of the data.
        """
        return cls._read(lambda context, read: reading(context, text, read), c_text(name), settings)

    @classmethod
    def _read(cls, source: Callable, label: Any, settings: Optional[Dict[str, Any]]) -> Model:
        context = Context()
        made = ffi.new("remat_model **")
        changes, kept = c_texts(setting_texts(settings))
        source(context, lambda stream: lib.remat_model_read_with(context.pointer, stream, label, changes, made))
        del kept
        return cls._wrap(context, made[0])

    def convert_weights(
        self, weights: PathLike, output: PathLike, *, to_torch: bool = False, names: Optional[PathLike] = None
    ) -> None:
        """Writes the weights of a file or folder to another one, under PyTorch's names or Remat's.

        If the output is a folder, or ends with "/", a model that came from a folder is written as one, with its adapters
        added to the weights.

        Args:
            names: a file with PyTorch's names; None: its modules have the names of the layers.
        """
        chosen, path = options("convert_options"), ffi.NULL if names is None else c_path(names)
        chosen.to_torch, chosen.names_path = to_torch, path
        self._handle.call(lib.remat_weights_convert, c_path(weights), c_path(output), chosen)

    # ---- building ----

    def _set(self, function: Callable, *arguments: Any, properties: Iterable[str]) -> None:
        texts, kept = c_texts(properties)
        self._handle.call(function, *arguments, texts)
        del kept

    def add_layer(self, type: str, **properties: Any) -> None:
        """Adds a layer, such as `add_layer("fully_connected", name="fc1", unit=64, input_layers=["a", "b"])`.

        `remat.layer_types()` describes the types and their properties. Without `name` the name is made from the type.
        InvalidError names the layer and the property.
        """
        self._set(lib.remat_model_add_layer, c_text(type), properties=_properties(properties))

    def add_block(self, layers: Iterable[str]) -> None:
        """Declares a block: consecutive layers that are recomputed together in the backward pass."""
        self._set(lib.remat_model_add_block, properties=layers)

    def set(self, **properties: Any) -> None:
        """Sets what the section [Model] of a file says: batch_size, epochs, seed, budget and others."""
        self._set(lib.remat_model_set, properties=_properties(properties))

    def set_optimizer(self, type: str, **properties: Any) -> None:
        """Sets the optimizer, such as `set_optimizer("adam", learning_rate=0.001)`."""
        self._set(lib.remat_model_set_optimizer, c_text(type), properties=_properties(properties))

    def set_dataset(self, type: str, **properties: Any) -> None:
        """Sets the dataset, such as `set_dataset("csv", inputs="table.csv", validation_split=0.2)`."""
        self._set(lib.remat_model_set_dataset, c_text(type), properties=_properties(properties))

    def compile(self) -> None:
        """Connects the layers and finds all shapes. After that, no layers or blocks can be added."""
        self._handle.call(lib.remat_model_compile)

    # ---- looking at a compiled model ----

    @property
    def batch_size(self) -> int:
        """How many samples a batch has."""
        return lib.remat_model_batch(self._handle.pointer)

    @property
    def budget_bytes(self) -> Optional[int]:
        """The budget that the model has; None if it has none."""
        budget = lib.remat_model_budget(self._handle.pointer)
        return None if budget == lib.REMAT_NO_BUDGET else budget

    @property
    def parameter_count(self) -> int:
        """How many values are trained."""
        return lib.remat_model_parameter_count(self._handle.pointer)

    @property
    def layers(self) -> LazySequence[ModelLayer]:
        """The layers of the compiled model."""
        return LazySequence(lib.remat_model_layer_count(self._handle.pointer), self._layer)

    def _layer(self, position: int) -> ModelLayer:
        layer = ffi.new("remat_model_layer *")
        self._handle.call(lib.remat_model_get_layer_sized, position, layer, ffi.sizeof(layer[0]))
        found = record(ModelLayer, layer)
        missing: Dict[str, Any] = {step: None for step in _STEPS if getattr(found, step) == lib.REMAT_NOWHERE}
        return found._replace(**missing)

    @property
    def inputs(self) -> List[SampleField]:
        """What a sample has for each input layer."""
        return [self._input(i) for i in range(lib.remat_model_input_count(self._handle.pointer))]

    def _input(self, position: int) -> SampleField:
        return self._field(lib.remat_model_get_input_sized, position)

    @property
    def labels(self) -> SampleField:
        """What labels a sample has. InvalidError: the model has no loss."""
        return self._field(lib.remat_model_get_labels_sized)

    def _field(self, function: Callable, *arguments: Any) -> SampleField:
        field = ffi.new("remat_sample_field *")
        self._handle.call(function, *arguments, field, ffi.sizeof(field[0]))
        found = record(SampleField, field)
        return found._replace(dtype=DTYPES[field.dtype])

    def summary(self, json: bool = False) -> str:
        """Layers, shapes, parameters and bytes as a table, or as JSON."""
        model = self._handle.pointer
        return written(self._handle.context, lambda stream: lib.remat_model_write_summary(model, stream, json))

    def order(self, json: bool = False) -> str:
        """When the steps of every layer run, and the live ranges of all tensors, as a table or as JSON."""
        model = self._handle.pointer
        return written(self._handle.context, lambda stream: lib.remat_model_write_order(model, stream, json))


def layer_types(type: Optional[str] = None, json: bool = False) -> str:
    """A list of the layer types, or the inputs and properties of one type, for people or as JSON."""
    context, name = Context(), c_text(type)
    return written(context, lambda stream: lib.remat_layer_types_write(context.pointer, name, stream, json))


def setting_texts(settings: Optional[Dict[str, Any]]) -> List[str]:
    """Changes to a model file, as the library takes them."""
    return [f"{key}={_value(value)}" for key, value in (settings or {}).items()]


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(_value(element) for element in value)
    return str(value)


def _properties(properties: Dict[str, Any]) -> List[str]:
    return [f"{key}={_value(value)}" for key, value in properties.items()]
