"""Turns a schedule into Python code: one function for the forward, one for the backward.

Each line is one operation. A tensor is deleted after the line that reads it last, so that its memory is free from there on.
"""
import math

import torch

from .joint_graph import Read, View


class Program:
    """The code of a schedule. `forward(given)` gives (outputs, saved); `backward(given, saved, tangents)` gives the gradients
    and empties `saved`."""

    def __init__(self, joint, schedule, boundary):
        self.joint = joint
        self.globals = {"clone": _clone, "torch": torch}
        self.names = {}
        self._write(schedule, boundary)

    # ---- when instances end ----

    def _last_uses(self, steps, boundary):
        """For each position, the keys that end there; and the keys that live across the boundary."""
        joint = self.joint
        results = {read.key for read in joint.outputs + joint.gradients if read}
        results |= {(storage.number, 0) for storage in joint.tangents}
        current, ends = {}, [[] for _ in steps]
        spans = []  # (key, born, last)

        def close(key):
            born, last = current.pop(key)
            spans.append((key, born, last))

        for position, action in enumerate(steps):
            reads = [read.key for read in joint.outputs if read] if action is None else action.reads
            for key in reads:
                if key in current:
                    current[key][1] = position
            writes = [] if action is None else action.writes
            for key in writes:
                if key in current:
                    close(key)
                current[key] = [position, position]
        for key in list(current):
            if key in results:
                current[key][1] = len(steps)
            close(key)
        for key, born, last in spans:
            if last < len(steps):
                ends[last].append(key)
        across = [key for key, born, last in spans if born < boundary < last]
        return ends, across

    # ---- code ----

    def _global(self, prefix, value):
        name = self.names.get((prefix, id(value)))
        if name is None:
            name = f"{prefix}{len(self.globals)}"
            self.names[(prefix, id(value))] = name
            self.globals[name] = value
        return name

    def _constant(self, value):
        if value is None or isinstance(value, (bool, int, str)) and type(value) in (bool, int, str):
            return repr(value)
        if type(value) is float and math.isfinite(value):
            return repr(value)
        return self._global("c", value)

    def _variable(self, key):
        storage = self.joint.storages[key[0]]
        return f"g{storage.number}" if storage.given else f"t{key[0]}_{key[1]}"

    def _expression(self, value, rename=None):
        if isinstance(value, Read):
            text = value.name if isinstance(value, _Renamed) else \
                (rename or {}).get(value.key) or self._variable(value.key)
            for view in value.views:
                text = self._view(view, text)
            return text
        if isinstance(value, (list, tuple)):
            parts = [self._expression(part, rename) for part in value]
            if isinstance(value, tuple):
                return "(" + ", ".join(parts) + ("," if len(parts) == 1 else "") + ")"
            return "[" + ", ".join(parts) + "]"
        return self._constant(value)

    def _view(self, view: View, source):
        args = [source if place == view.place else self._expression(arg) for place, arg in enumerate(view.args)]
        args += [f"{key}={self._expression(value)}" for key, value in view.kwargs.items()]
        text = f"{self._operation(view.target)}({', '.join(args)})"
        return text if view.pick is None else f"{text}[{view.pick}]"

    def _operation(self, target):
        return self._global("o", getattr(target, "_op", target))

    def _call(self, action, rename, is_rerun):
        args = list(action.args)
        if action.batch_norm and is_rerun:  # statistics are updated by the first run alone
            for place in action.batch_norm[:2]:
                args[place] = _Copied(args[place])
        texts = [f"clone({self._expression(arg.read)})" if isinstance(arg, _Copied) else self._expression(arg, rename)
                 for arg in args]
        texts += [f"{key}={self._expression(value, rename)}" for key, value in action.kwargs.items()]
        return f"{self._operation(action.target)}({', '.join(texts)})"

    def _step(self, action, ends, is_rerun, runs_again, lines):
        rename = {}
        if action.changes and not action.is_effect:
            before, after = action.changes
            new, old = self._variable(after), self._variable(before)
            lines.append(f"{new} = {old}" if before in ends else f"{new} = clone({old})")
            rename = {before: new} if before in ends else {}
        state = f"r{action.node.name}"
        generator = self._generator(action) if action.is_random else None
        if generator and is_rerun:
            lines += [f"rng = {generator}.get_state()", f"{generator}.set_state({state})"]
        elif generator and runs_again:
            lines.append(f"{state} = {generator}.get_state()")
        if action.changes and not action.is_effect and not rename:
            # The changed argument is the copy; other arguments may still mean the original.
            call = self._call(_with_changed(action, self._variable(action.changes[1])), {}, is_rerun)
        else:
            call = self._call(action, rename, is_rerun)
        if action.output_is_single:
            storage = action.outputs[0]
            lines.append(call if storage is None else f"t{storage.number}_0 = {call}")
        else:
            names = ["_" if s is None else f"t{s.number}_0" for s in action.outputs]
            lines.append(f"{', '.join(names)}{',' if len(names) == 1 else ''} = {call}")
        if generator and is_rerun:
            lines.append(f"{generator}.set_state(rng)")

    def _generator(self, action):
        own = action.kwargs.get("generator")
        if own is None:
            fake = next((s.base for s in action.outputs if s is not None), None)
            fake = fake if fake is not None else action.changed_read.fake
            device = fake.device
            if device.type == "cuda":
                index = device.index if device.index is not None else torch.cuda.current_device()
                own = torch.cuda.default_generators[index]
            else:
                own = torch.default_generator
        return self._global("rng", own)

    def _write(self, schedule, boundary_action):
        joint = self.joint
        steps = [None if a == boundary_action else joint.actions[a - (a > boundary_action)] for a in schedule]
        boundary = steps.index(None)
        ends, across = self._last_uses(steps, boundary)
        counts, seen = {}, set()
        for action in steps:
            counts[id(action)] = counts.get(id(action), 0) + 1
        parts = ([], [])
        states = []
        for position, action in enumerate(steps):
            if action is None:
                continue
            lines = parts[position > boundary]
            again = id(action) in seen
            seen.add(id(action))
            if action.is_random and counts[id(action)] > 1 and not again and position < boundary:
                states.append(f"r{action.node.name}")
            self._step(action, ends[position], again, counts[id(action)] > 1, lines)
            dead = [self._variable(key) for key in ends[position] if not joint.storages[key[0]].given]
            if dead:
                lines.append(f"del {', '.join(dead)}")
        self.reruns = sum(counts.values()) - len(counts)
        kept = [self._variable(key) for key in across if not joint.storages[key[0]].given]
        self.saved_keys = [key for key in across if not joint.storages[key[0]].given]
        saved = ", ".join(kept + states)
        forward = parts[0] + [f"return [{', '.join(self._output(read) for read in joint.outputs)}], [{saved}]"]
        tail = [f"return [{', '.join(self._expression(read) if read else 'None' for read in joint.gradients)}]"]
        backward = parts[1] + tail
        given = joint.given
        unpack = "".join(f"g{s.number}, " for s in given)
        tangents = "".join(f"t{s.number}_0, " for s in joint.tangents)
        for storage, tensor in joint.constants:
            self.globals[f"g{storage.number}"] = tensor
        body = ["def forward(given):"]
        body += [f"    {unpack}= given"] if given else []
        body += ["    " + line for line in forward]
        body += ["", "def backward(given, saved, tangents):"]
        body += [f"    {unpack}= given"] if given else []
        body += [f"    {saved}, = saved" if kept + states else "    pass", "    saved.clear()"]
        body += [f"    {tangents}= tangents", "    del tangents"] if joint.tangents else []
        body += ["    " + line for line in backward]
        self.source = "\n".join(body) + "\n"
        backward_text = "\n".join(backward)
        self.backward_given = [i for i, s in enumerate(given) if _mentions(backward_text, f"g{s.number}")]
        space = dict(self.globals)
        exec(compile(self.source, "<remat schedule>", "exec"), space)
        self.forward, self.backward = space["forward"], space["backward"]

    def _output(self, read):
        text = self._expression(read)
        # The caller may change an output in place; the module's own tensors must not change with it.
        return f"clone({text})" if read.storage.given else text


class _Copied:
    def __init__(self, read):
        self.read = read


def _with_changed(action, name):
    """The action with the variable `name` in the place of the argument that it changes."""
    other = object.__new__(type(action))
    other.__dict__.update(action.__dict__)
    changed = action.changed_read

    def put(value):
        if value is changed:
            read = object.__new__(_Renamed)
            read.storage, read.state, read.views, read.fake = value.storage, value.state, value.views, value.fake
            read.name = name
            return read
        if isinstance(value, (list, tuple)):
            return type(value)(put(part) for part in value)
        return value

    other.args = put(action.args)
    other.kwargs = {key: put(value) for key, value in action.kwargs.items()}
    return other


class _Renamed(Read):
    __slots__ = ("name",)


def _mentions(text, name):
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        if (at == 0 or not (text[at - 1].isalnum() or text[at - 1] == "_")) and \
                (end == len(text) or not (text[end].isalnum() or text[end] == "_")):
            return True
        at = text.find(name, end)
    return False


def _clone(value):
    """A copy with the same strides."""
    copy = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)
    return copy.copy_(value)
