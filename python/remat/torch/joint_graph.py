"""Turns recorded operations into a graph that the library plans.

A tensor of the graph is one state of one storage. Views have no tensor of their own: they are made again from their storage
wherever they are read. An operation that changes a storage in place reads its old state and writes the new one. If
something else still reads the old state, the executor copies it first; that is what `in_place` means in a graph.
"""
import operator

import torch
import torch.utils._pytree as pytree

# Share the storage of their input although their signatures do not say so.
UNDECLARED_VIEWS = {"aten::_unsafe_view", "aten::lift", "aten::lift_fresh"}
# Return their input; an executor leaves them out.
SAME_VALUE = {"aten::detach", "aten::alias", "aten::lift_fresh", "aten::lift"}
# Update running statistics, which their signatures do not say. The results do not depend on the old statistics.
# By name: the positions of the mean and the variance, and of the flag for training.
BATCH_NORMS = {
    "aten::native_batch_norm": (3, 4, 5),
    "aten::_native_batch_norm_legit": (3, 4, 5),
    "aten::cudnn_batch_norm": (3, 4, 5),
    "aten::miopen_batch_norm": (3, 4, 5),
    "aten::_batch_norm_with_update": (3, 4, None),
}
# Read by at least so many actions over at least this part of the forward, a tensor hinders cuts: see hoist().
SHARED_READERS, SHARED_SPAN, SHARED_BYTES = 6, 0.25, 0.05


class Storage:
    """Memory that an operation allocates, or that was there before (`given`)."""

    __slots__ = ("number", "name", "bytes", "given", "states", "maker", "base")

    def __init__(self, number, name, size, given, base):
        self.number, self.name, self.bytes, self.given, self.base = number, name, size, given, base
        self.states = 1


class Value:
    """A tensor: a storage, and the views to take of it. `fake` has its shape."""

    __slots__ = ("storage", "views", "fake")

    def __init__(self, storage, views, fake):
        self.storage, self.views, self.fake = storage, views, fake


class Read:
    """A value as it is when an action reads it: with the state of its storage."""

    __slots__ = ("storage", "state", "views", "fake")

    def __init__(self, value):
        self.storage, self.views, self.fake = value.storage, value.views, value.fake
        self.state = value.storage.states - 1

    @property
    def key(self):
        return self.storage.number, self.state


class View:
    """One step from a storage to a value: an operation with one tensor argument, and which of its results is taken."""

    __slots__ = ("target", "args", "kwargs", "place", "pick")

    def __init__(self, target, args, kwargs, place, pick):
        self.target, self.args, self.kwargs, self.place, self.pick = target, args, kwargs, place, pick


class Action:
    """One operation. `args` has Reads in the place of tensors."""

    def __init__(self, name, target, args, kwargs):
        self.name, self.target, self.args, self.kwargs = name, target, args, kwargs
        self.reads, self.writes = [], []  # keys (storage, state)
        self.outputs = []                 # storages by the number of the result; None: no tensor, or an alias
        self.output_is_list = False
        self.output_is_single = False
        self.changes = None               # key before and after, of the storage that it changes
        self.changed_read = None          # the Read to change
        self.is_random = False
        self.batch_norm = None
        self.is_effect = False            # it must run, and only once: it changes something that was there before
        self.is_forward = False
        self.cost = 0
        self.workspace_bytes = 0


def storage_bytes(fake):
    """Bytes from the first element to the last."""
    if fake.numel() == 0:
        return 0
    last = sum((size - 1) * stride for size, stride in zip(fake.shape, fake.stride()))
    return (int(fake.storage_offset()) + last + 1) * fake.element_size()


def rounded(size, device):
    """What the device's allocator takes for `size` bytes."""
    return -(-size // 512) * 512 if device.type == "cuda" else size


def _is_random(target, args, kwargs):
    tags = getattr(target, "tags", ())
    tag = getattr(torch.Tag, "nondeterministic_seeded", None)
    if tag is None or tag not in tags:
        return False
    if "scaled_dot_product" in target._schema.name or "efficient_attention" in target._schema.name:
        names = [argument.name for argument in target._schema.arguments]
        if "dropout_p" in names:
            place = names.index("dropout_p")
            probability = kwargs.get("dropout_p", args[place] if place < len(args) else 0.0)
            return probability != 0.0
    return True


def _is_tensor(value):
    return isinstance(value, torch.Tensor)


class JointGraph:
    """The actions of a step and the storages they use."""

    def __init__(self, capture):
        self.capture = capture
        self.storages, self.actions = [], []
        self.given_count = len(capture.slots) + capture.input_count
        self.constants = []  # (storage, tensor)
        self.values = {}
        self._lower()
        self._find_forward()

    # ---- from operations to actions ----

    def _storage(self, name, fake, given=False):
        storage = Storage(len(self.storages), name, rounded(storage_bytes(fake), fake.device), given, fake)
        self.storages.append(storage)
        return storage

    def _lower(self):
        graph, capture = self.capture.graph, self.capture
        placeholders = [node for node in graph.nodes if node.op == "placeholder"]
        self.given = []
        for number, node in enumerate(placeholders):
            fake = node.meta["val"]
            is_tangent = number >= self.given_count
            name = f"tangent{number - self.given_count}" if is_tangent else capture.input_names[number]
            storage = self._storage(name, fake, given=not is_tangent)
            self.values[node] = Value(storage, (), fake)
            self.given.append(storage)
        self.tangents = self.given[self.given_count:]
        self.given = self.given[:self.given_count]
        for node in graph.nodes:
            if node.op == "get_attr":
                tensor = getattr(capture.owner, node.target)
                storage = self._storage(str(node.target), tensor, given=True)
                self.constants.append((storage, tensor))
                self.values[node] = Value(storage, (), tensor)
            elif node.op == "call_function":
                self._call(node)
            elif node.op == "output":
                values, count = pytree.tree_flatten(node.args[0])[0], sum(capture.output_is_tensor)
                self.outputs = [self._read(value) for value in values[:count]]
                self.gradients = [self._read(value) for value in values[count:]]

    def _read(self, node):
        return Read(self.values[node]) if isinstance(node, torch.fx.Node) else None

    def _argument(self, value):
        if isinstance(value, torch.fx.Node):
            found = self.values[value]
            return Read(found) if isinstance(found, Value) else found
        if isinstance(value, (list, tuple)):
            return type(value)(self._argument(part) for part in value) if type(value) in (list, tuple) else \
                [self._argument(part) for part in value]
        if isinstance(value, dict):
            return {key: self._argument(part) for key, part in value.items()}
        return value

    def _call(self, node):
        target = node.target
        if target is operator.getitem:
            self.values[node] = self.values[node.args[0]][node.args[1]]
            return
        fake = node_value(node)
        args, kwargs = self._argument(node.args), self._argument(node.kwargs)
        schema = getattr(target, "_schema", None)
        if schema is None:
            raise NotImplementedError(f"{target} has no signature")
        if not _is_tensor(fake) and not (isinstance(fake, (list, tuple)) and any(map(_is_tensor, fake))):
            self.values[node] = fake
            if not any(a.alias_info is not None and a.alias_info.is_write for a in schema.arguments):
                return
        view = self._view_source(schema, args, fake)
        if view is not None:
            self._add_view(node, target, args, kwargs, view, fake)
            return
        self._add_action(node, target, schema, args, kwargs, fake)

    @staticmethod
    def _view_source(schema, args, fake):
        """The position of the argument that the result is a view of."""
        if schema.name in UNDECLARED_VIEWS:
            return 0
        if any(a.alias_info is not None and a.alias_info.is_write for a in schema.arguments):
            return None
        for place, argument in enumerate(schema.arguments):
            if argument.alias_info is not None and place < len(args) and isinstance(args[place], Read):
                return place
        return None

    def _add_view(self, node, target, args, kwargs, place, fake):
        source = args[place]
        if target._schema.name == "aten::_reshape_alias":
            # PyTorch 1.13 writes strides down that it saw on fake tensors. Those of a kernel's result may be others.
            target, args = torch.ops.aten.reshape.default, args[:2]
        if target._schema.name in SAME_VALUE:
            self.values[node] = Value(source.storage, source.views, fake)
            return
        if isinstance(fake, (list, tuple)):
            self.values[node] = [
                Value(source.storage, source.views + (View(target, args, kwargs, place, pick),), part)
                for pick, part in enumerate(fake)]
        else:
            self.values[node] = Value(source.storage, source.views + (View(target, args, kwargs, place, None),), fake)

    def _add_action(self, node, target, schema, args, kwargs, fake):
        action = Action(node.name, target, args, kwargs)
        action.node = node
        for read in reads_of((args, kwargs)):
            if read.key not in action.reads:
                action.reads.append(read.key)
        action.is_random = _is_random(target, args, kwargs)
        norm = BATCH_NORMS.get(schema.name)
        if norm is not None:
            mean, _, flag = norm
            trains = flag is None or args[flag]
            if trains and isinstance(args[mean], Read) and args[mean].storage.given:
                action.batch_norm = norm
                action.reads = [key for key in action.reads if key not in (args[mean].key, args[mean + 1].key)]
        written = [] if action.batch_norm else self._written(schema, args, kwargs)
        if len(written) > 1:
            raise NotImplementedError(f"{schema.name} changes several tensors in place")
        if written:
            read = written[0]
            storage = read.storage
            action.changed_read = read
            before = read.key
            storage.states += 1
            after = (storage.number, storage.states - 1)
            action.changes = (before, after)
            action.writes.append(after)
            action.is_effect = storage.given
        results = fake if isinstance(fake, (list, tuple)) else [fake]
        action.output_is_single = not isinstance(fake, (list, tuple))
        values = []
        for number, part in enumerate(results):
            if not _is_tensor(part):
                values.append(part)
                action.outputs.append(None)
                continue
            if written and (action.output_is_single or len(schema.returns) > number and
                            schema.returns[number].alias_info is not None):
                values.append(Value(written[0].storage, written[0].views, part))
                action.outputs.append(None)
                continue
            storage = self._storage(node.name if action.output_is_single else f"{node.name}.{number}", part)
            values.append(Value(storage, (), part))
            action.outputs.append(storage)
            action.writes.append((storage.number, 0))
        if fake is not None:
            self.values[node] = values[0] if action.output_is_single else values
        self.actions.append(action)

    @staticmethod
    def _written(schema, args, kwargs):
        found = []
        for place, argument in enumerate(schema.arguments):
            if argument.alias_info is None or not argument.alias_info.is_write:
                continue
            value = args[place] if place < len(args) else kwargs.get(argument.name)
            found += [read for read in reads_of(value) if read.storage.number not in [f.storage.number for f in found]]
        return found

    # ---- what belongs to the forward ----

    def _find_forward(self):
        """Forward is what the outputs need, and what changes the module. The rest runs when the gradients come in."""
        makers = {key: action for action in self.actions for key in action.writes}
        self.makers = makers

        def ancestors(keys):
            seen, stack = set(), list(keys)
            while stack:
                maker = makers.get(stack.pop())
                if maker is not None and id(maker) not in seen:
                    seen.add(id(maker))
                    stack.extend(maker.reads)
            return seen

        from_tangents = {(storage.number, 0) for storage in self.tangents}
        for action in self.actions:
            if any(key in from_tangents for key in action.reads):
                from_tangents.update(action.writes)
                action.needs_tangents = True
            else:
                action.needs_tangents = False
        effects = [a for a in self.actions if a.is_effect or a.is_random or a.batch_norm]
        ends = [read.key for read in self.outputs if read]
        for action in effects:
            if not action.needs_tangents:
                ends += action.reads + action.writes
        # What reads a given tensor before it changes cannot wait for the backward.
        changed = {a.changes[0] for a in effects if a.changes}
        for action in self.actions:
            if any(key in changed for key in action.reads):
                if action.needs_tangents:
                    raise NotImplementedError(f"{action.name} reads, in the backward, a tensor that the forward changes")
                ends += action.writes
        forward = ancestors(ends) | {id(a) for a in effects if not a.needs_tangents}
        needed = forward | ancestors([read.key for read in self.gradients if read]) | {id(a) for a in effects}
        for action in effects:
            needed |= ancestors(action.reads)
        self.actions = [action for action in self.actions if id(action) in needed]
        for action in self.actions:
            action.is_forward = id(action) in forward
        # Trace order has all of the forward before what needs tangents, but other parts of the backward may come between.
        self.actions.sort(key=lambda action: not action.is_forward)
        self.forward_count = sum(action.is_forward for action in self.actions)
        self._mark_once()
        self.name_actions()

    def name_actions(self):
        """Names actions by the sub-module that they belong to. A backward action belongs to where its inputs were made."""
        where = {}
        for action in self.actions:
            path = action.node.meta.get("remat_path")
            if path is None:
                path = next((where[key] for key in action.reads if where.get(key)), "")
            if action.is_forward:
                where.update((key, path) for key in action.writes)
            kind = action.target._schema.name.split("::")[-1]
            action.path = path
            action.name = (path + "." if path else "") + kind + ("" if action.is_forward else " (backward)")

    def _mark_once(self):
        """What cannot run twice: changes of what was given, what reads it before such a change, and what makes an output, which the
        caller holds from then on."""
        outputs = {read.key for read in self.outputs if read}
        changed = {}
        for action in self.actions:
            if action.is_effect:
                changed.setdefault(action.changes[0][0], []).append(action.changes[0])
        for action in self.actions:
            action.once = (not action.is_forward or action.is_effect or any(key in outputs for key in action.writes) or
                           any(key[0] in changed and key in changed[key[0]] for key in action.reads))

    # ---- to the library ----

    def hoist(self):
        """Makes tensors that many layers read, such as masks and tables of angles, run-once: the planner cuts the graph where
        a single tensor passes, and these would pass everywhere. They are kept from then on."""
        readers = {}
        for place, action in enumerate(self.actions[:self.forward_count]):
            for key in action.reads:
                readers.setdefault(key, []).append(place)
        total = sum(s.bytes for s in self.storages if not s.given)
        shared, size = [], 0
        for key, places in readers.items():
            if key not in self.makers or self.storages[key[0]].given:
                continue
            if len(places) >= SHARED_READERS and places[-1] - places[0] >= SHARED_SPAN * self.forward_count:
                shared.append(key)
                size += self.storages[key[0]].bytes
        if not shared or size > SHARED_BYTES * total:
            return
        before, after = self._cut_count(readers, set()), self._cut_count(readers, set(shared))
        if after >= 4 * max(before, 2):
            for key in shared:
                self.makers[key].once = True

    def _cut_count(self, readers, kept):
        change = [0] * (self.forward_count + 2)
        for place, action in enumerate(self.actions[:self.forward_count]):
            for key in action.writes:
                if key in readers and key not in kept and not action.once and readers[key][-1] > place:
                    change[place + 1] += 1
                    change[readers[key][-1] + 1] -= 1
        passing, cuts = 0, 0
        for place in range(1, self.forward_count):
            passing += change[place]
            cuts += passing == 1
        return cuts

    def to_remat(self, name="torch", cost_unit="ns"):
        """The graph as the library's file has it, with one action more: at it the outputs are handed out and the tangents
        come in. Gives the graph and the number of that action."""
        tensors, numbers = [], {}

        def tensor(key, label, size, given=False):
            numbers[key] = len(tensors)
            tensors.append({"name": label, "bytes": size, "given": given} if given else {"name": label, "bytes": size})

        for storage in self.given + [storage for storage, _ in self.constants]:
            tensor((storage.number, 0), storage.name, 0, given=True)
        actions, changes = [], []
        for number, action in enumerate(self.actions + [None]):
            if number == self.forward_count:
                changes.append(len(actions))
                for storage in self.tangents:
                    tensor((storage.number, 0), storage.name, storage.bytes)
                actions.append({"name": "outputs", "once": True, "cost": 0,
                                "reads": sorted({numbers[read.key] for read in self.outputs if read}),
                                "writes": [numbers[(storage.number, 0)] for storage in self.tangents]})
            if action is None:
                break
            for key in action.writes:
                storage = self.storages[key[0]]
                label = storage.name if key[1] == 0 else f"{storage.name}'{key[1]}"
                tensor(key, label, 0 if storage.given else storage.bytes)
            entry = {"name": action.name, "cost": action.cost, "reads": [numbers[key] for key in action.reads],
                     "writes": [numbers[key] for key in action.writes]}
            if action.workspace_bytes:
                entry["workspace_bytes"] = action.workspace_bytes
            if action.once:
                entry["once"] = True
            if action.changes and not action.is_effect:
                entry["in_place"] = [numbers[action.changes[0]], numbers[action.changes[1]]]
            actions.append(entry)
        results = []
        for key in [read.key for read in self.outputs + self.gradients if read] + [(s.number, 0) for s in self.tangents]:
            if numbers[key] not in results and not tensors[numbers[key]].get("given"):
                results.append(numbers[key])
        graph = {"format": "remat-graph", "version": 1, "name": name, "cost_unit": cost_unit, "tensors": tensors,
                 "actions": actions, "results": results}
        self.numbers = numbers
        return graph, changes[0]


def node_value(node):
    """The fake result of an operation. PyTorch 1.13 notes the parts of a tuple at the nodes that take them out."""
    value = node.meta.get("val")
    if value is not None or not hasattr(node.target, "_schema"):
        return value
    parts = {user.args[1]: user.meta.get("val") for user in node.users if user.target is operator.getitem}
    return [parts.get(number) for number in range(max(parts) + 1)] if parts else None


def reads_of(value):
    """All Reads in nested arguments."""
    if isinstance(value, Read):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from reads_of(part)
    elif isinstance(value, dict):
        for part in value.values():
            yield from reads_of(part)
