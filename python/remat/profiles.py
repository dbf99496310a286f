"""Profiles: what the layers of a chain cost, in bytes and in work.

    profile = remat.Profile("example")
    profile.add_layer("attention", 1024, 2_000_000)
    profile.add_layer("ffn", 512, 1_000_000)
    plan = profile.plan("3KB")

docs/memory-model.md says what the numbers mean, docs/formats.md what their defaults are.
"""

from __future__ import annotations

from typing import Iterable, NamedTuple, Optional, Sequence, Tuple

from . import curves, plans, schedules
from ._convert import PathLike, Size, c_bytes, c_path, c_text, options, py_text, reading, record, written
from ._handles import Context, Handle
from ._library import ffi, lib
from ._sequences import LazySequence
from .errors import BudgetError, InvalidError

#: The kinds of work that a layer can do; some strategies choose layers by it.
LAYER_TYPES: Tuple[str, ...] = tuple(
    py_text(lib.remat_layer_type_name(number))
    for number in range(lib.REMAT_ATTENTION, lib.REMAT_OTHER + 1)
)


class Mode(NamedTuple):
    """A way to save a layer's state for its backward. When a layer is added, None stands for the default.

    Attributes:
        activation_bytes: of the saved state.
        forward_cost: of a forward that saves in this mode.
        backward_cost: of a backward that uses a state saved in this mode.
        holds_output: the layer's output can be read from the saved state.
    """

    name: str
    activation_bytes: Optional[int] = None
    forward_cost: Optional[int] = None
    backward_cost: Optional[int] = None
    forward_workspace_bytes: Optional[int] = None
    backward_workspace_bytes: Optional[int] = None
    holds_output: bool = True
    lossless: bool = True


class Layer(NamedTuple):
    """A layer of a profile with all defaults filled in. Mode 0 is `keep`: the layer's own figures.

    Attributes:
        index: the caller's own number.
        cost_ratio: recompute_flops / activation_bytes of the mode `keep`; 0 if there are no bytes.
    """

    name: str
    index: int  # type: ignore[assignment]
    type: str
    recompute_flops: int
    output_bytes: int
    modes: Tuple[Mode, ...]
    cost_ratio: float


class Profile:
    """A chain of layers, to be planned within a budget.

    Args:
        name: of the chain.
        cost_unit: what costs are counted in, such as "ns".
        input_bytes: of the input of the chain.
        input_gradient_bytes: of its gradient; as many as `input_bytes` unless it is set.
        loss_workspace_bytes: what the loss needs only while it runs.

    A profile that has plans or a curve can no longer be changed.
    """

    def __init__(
        self,
        name: str = "",
        cost_unit: str = "",
        input_bytes: Optional[Size] = None,
        input_gradient_bytes: Optional[Size] = None,
        loss_workspace_bytes: Optional[Size] = None,
    ) -> None:
        context = Context()
        made = ffi.new("remat_profile **")
        context.call(lib.remat_profile_create, context.pointer, made)
        self._adopt(Handle(context, made[0], lib.remat_profile_destroy))
        for text, set_text in ((name, lib.remat_profile_set_name), (cost_unit, lib.remat_profile_set_cost_unit)):
            if text:
                self._handle.call(set_text, c_text(text))
        for size, set_size in (
            (input_bytes, lib.remat_profile_set_input_bytes),
            (input_gradient_bytes, lib.remat_profile_set_input_gradient_bytes),
            (loss_workspace_bytes, lib.remat_profile_set_loss_workspace_bytes),
        ):
            if size is not None:
                self._handle.call(set_size, c_bytes(context, size))

    def _adopt(self, handle: Handle, fixed: bool = False) -> None:
        self._handle = handle
        self._fixed = fixed

    @classmethod
    def _wrap(cls, handle: Handle, fixed: bool = False) -> Profile:
        profile = cls.__new__(cls)
        profile._adopt(handle, fixed)
        return profile

    def __repr__(self) -> str:
        name = f" {self.name!r}" if self.name else ""
        return f"<remat.Profile{name}: {len(self.layers)} layers>"

    # ---- building ----

    def add_layer(
        self,
        type: str,
        activation_bytes: Size,
        recompute_flops: int,
        name: Optional[str] = None,
        index: Optional[int] = None,
        output_bytes: Optional[Size] = None,
        forward_cost: Optional[int] = None,
        backward_cost: Optional[int] = None,
        forward_workspace_bytes: Optional[Size] = None,
        backward_workspace_bytes: Optional[Size] = None,
        modes: Iterable[Mode] = (),
    ) -> int:
        """Adds a layer and returns its position. What is None gets the default of docs/formats.md.

        Args:
            type: one of `remat.profiles.LAYER_TYPES`.
            activation_bytes: of the state that the backward needs.
            recompute_flops: of running the layer forward once more.
            index: the caller's own number, unique in the chain.
            modes: other ways to save the state, besides keeping it as it is.
        """
        if self._fixed:
            raise InvalidError("a profile that was planned, or that belongs to a trainer, cannot be changed")
        if type not in LAYER_TYPES:
            raise InvalidError(f"the type of a layer is one of {', '.join(LAYER_TYPES)}, not {type!r}")
        layer = options("layer_options")
        text = c_text(name)
        layer.name, layer.type, layer.recompute_flops = text, LAYER_TYPES.index(type), recompute_flops
        numbers = {
            "index": index,
            "activation_bytes": activation_bytes,
            "output_bytes": output_bytes,
            "forward_cost": forward_cost,
            "backward_cost": backward_cost,
            "forward_workspace_bytes": forward_workspace_bytes,
            "backward_workspace_bytes": backward_workspace_bytes,
        }
        self._set(layer, numbers)
        chosen = list(modes)
        kept = [c_text(mode.name) for mode in chosen]
        array = ffi.new("remat_mode_options[]", len(chosen))
        for i, mode in enumerate(chosen):
            lib.remat_mode_options_init_sized(ffi.addressof(array, i), ffi.sizeof(array[i]))
            array[i].name = kept[i]
            self._set(array[i], {field: value for field, value in mode._asdict().items() if field != "name"})
        layer.modes, layer.mode_count = array, len(chosen)
        with self._handle.context:
            self._handle.call(lib.remat_profile_add_layer, layer)
            return lib.remat_profile_layer_count(self._handle.pointer) - 1

    def _set(self, struct, numbers) -> None:
        for field, value in numbers.items():
            if value is not None:
                setattr(struct, field, value if isinstance(value, bool) else c_bytes(self._handle.context, value))

    # ---- looking at it ----

    @property
    def name(self) -> str:
        """The name; "" if it has none."""
        return py_text(lib.remat_profile_name(self._handle.pointer))

    @property
    def cost_unit(self) -> str:
        """What costs are counted in; "" if it was not set."""
        return py_text(lib.remat_profile_cost_unit(self._handle.pointer))

    @property
    def input_bytes(self) -> int:
        """The bytes of the input of the chain."""
        return lib.remat_profile_input_bytes(self._handle.pointer)

    @property
    def input_gradient_bytes(self) -> int:
        """The bytes of the gradient of the input."""
        return lib.remat_profile_input_gradient_bytes(self._handle.pointer)

    @property
    def loss_workspace_bytes(self) -> int:
        """What the loss needs only while it runs."""
        return lib.remat_profile_loss_workspace_bytes(self._handle.pointer)

    @property
    def layers(self) -> LazySequence[Layer]:
        """The layers in order."""
        return LazySequence(lib.remat_profile_layer_count(self._handle.pointer), self._layer)

    def _layer(self, position: int) -> Layer:
        with self._handle.context:  # pointers are valid until the profile is changed
            layer = lib.remat_profile_layer(self._handle.pointer, position)
            return Layer(
                name=py_text(layer.name),
                index=layer.index,
                type=py_text(lib.remat_layer_type_name(layer.type)),
                recompute_flops=layer.recompute_flops,
                output_bytes=layer.output_bytes,
                modes=tuple(record(Mode, lib.remat_layer_mode(layer, i)) for i in range(layer.mode_count)),
                cost_ratio=lib.remat_layer_cost_ratio(layer),
            )

    # ---- plans ----

    def plan(
        self,
        budget: Optional[Size] = None,
        strategy: Optional[str] = None,
        counts: str = "peak",
        allow_lossy: bool = False,
        method: Optional[str] = None,
        threads: int = 0,
    ) -> plans.Plan:
        """Decides which layers are kept and which are recomputed.

        Args:
            budget: bytes, or a text such as "8GB". None: no limit.
            strategy: such as "every-nth:2"; see `remat.strategies()`. None: "optimal" with a budget, "none"
                without one.
            counts: what the budget limits: the "peak", or only the bytes that are "kept" for the backward pass
                (with the strategy "budget").
            allow_lossy: modes that are not lossless may be used.
            method: of "optimal": "auto", "exhaustive" or "intervals".
            threads: of "optimal": 0 for all cores. The plan does not depend on it.

        Raises BudgetError if the strategy cannot meet the budget; it has the smallest budget that works.
        """
        chosen = self._plan_options(allow_lossy, method, threads)
        text = c_text(strategy)
        chosen[0].strategy = text
        if counts not in ("peak", "kept"):
            raise InvalidError(f"a budget counts the 'peak' or what is 'kept', not {counts!r}")
        chosen[0].budget_counts = lib.REMAT_COUNT_KEPT if counts == "kept" else lib.REMAT_COUNT_PEAK
        if budget is not None:
            chosen[0].budget_bytes = c_bytes(self._handle.context, budget)
        made = ffi.new("remat_plan **")
        context = self._handle.context
        try:
            context.call(lib.remat_plan_create, context.pointer, self._handle.pointer, chosen[0], made)
        except BudgetError as error:
            if made[0]:
                error.plan = self._adopt_plan(made[0])
                error.budget_bytes = error.plan.budget_bytes
                error.smallest_bytes = error.plan.min_budget_bytes
            raise
        return self._adopt_plan(made[0])

    @staticmethod
    def _plan_options(allow_lossy: bool, method: Optional[str], threads: int):
        chosen, text = options("plan_options"), c_text(method)
        chosen.allow_lossy, chosen.method, chosen.threads = allow_lossy, text, threads
        return chosen, text

    def _adopt_plan(self, pointer) -> plans.Plan:
        self._fixed = True
        return plans.Plan(self, Handle(self._handle.context, pointer, lib.remat_plan_destroy, self._handle))

    def curve(self, allow_lossy: bool = False, method: Optional[str] = None, threads: int = 0) -> curves.Curve:
        """The whole curve of cost over memory: the best plans for all budgets."""
        chosen = self._plan_options(allow_lossy, method, threads)
        made = ffi.new("remat_sweep **")
        context = self._handle.context
        context.call(lib.remat_sweep_create, context.pointer, self._handle.pointer, chosen[0], made)
        self._fixed = True
        return curves.Curve(self, Handle(context, made[0], lib.remat_sweep_destroy, self._handle))

    def simulate(self, steps: Sequence[schedules.Step]) -> schedules.ScheduleFigures:
        """The peak and the cost of any schedule of this chain. CheckError: it is not legal; `step` says where."""
        return schedules.simulate(self._handle, steps)

    # ---- files ----

    @classmethod
    def load(cls, path: PathLike) -> Profile:
        """Reads a profile, JSON or CSV. FileError, InputFileError."""
        context = Context()
        made = ffi.new("remat_profile **")
        context.call(lib.remat_profile_load, context.pointer, c_path(path), made)
        return cls._wrap(Handle(context, made[0], lib.remat_profile_destroy))

    @classmethod
    def from_text(cls, text: str, name: str = "text") -> Profile:
        """Reads a profile from the text of such a file. `name` stands for it in messages."""
        context = Context()
        made = ffi.new("remat_profile **")
        label = c_text(name)
        reading(context, text, lambda stream: lib.remat_profile_read(context.pointer, stream, label, made))
        return cls._wrap(Handle(context, made[0], lib.remat_profile_destroy))

    def to_json(self) -> str:
        """The profile as JSON."""
        return written(self._handle.context, lambda stream: lib.remat_profile_write(self._handle.pointer, stream))

    def save(self, path: PathLike) -> None:
        """Writes the profile to a file, which is replaced only when everything was written."""
        self._handle.call(lib.remat_profile_save, c_path(path))

    def load_plan(self, path: PathLike) -> plans.Plan:
        """Reads a plan of this profile, from any program, and checks it.

        CheckError: the schedule is illegal, or a figure in the file is wrong. FileError, InputFileError.
        """
        made = ffi.new("remat_plan **")
        context = self._handle.context
        context.call(lib.remat_plan_load, context.pointer, c_path(path), self._handle.pointer, made)
        return self._adopt_plan(made[0])

    def plan_from_json(self, text: str, name: str = "text") -> plans.Plan:
        """The same from the text of such a file."""
        made = ffi.new("remat_plan **")
        context, profile, label = self._handle.context, self._handle.pointer, c_text(name)
        reading(context, text, lambda stream: lib.remat_plan_read(context.pointer, stream, label, profile, made))
        return self._adopt_plan(made[0])

    def check_plan(self, text: str, name: str = "text") -> schedules.ScheduleFigures:
        """Checks the text of a plan file and gives the figures of its schedule. The errors are those of `load_plan`."""
        figures = ffi.new("remat_figures *")
        context, profile, label = self._handle.context, self._handle.pointer, c_text(name)
        size = ffi.sizeof(figures[0])
        reading(
            context,
            text,
            lambda stream: lib.remat_plan_check_sized(context.pointer, stream, label, profile, figures, size),
        )
        return schedules.schedule_figures(figures)
