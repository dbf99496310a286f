"""Splits the end of a language model, the product with the vocabulary and the cross entropy after it, into parts of its rows.

The logits are by far the largest tensors of such a model. With parts, only those of one part exist at a time. The sum over all rows is
then formed part by part, so that the numbers are the same up to rounding, not to the bit: `split` must be asked for.
"""
import torch

from .joint_graph import Action, Read, Value, View

aten = torch.ops.aten
SUM, MEAN = 2, 1


def _name(action):
    return action.target._schema.name.split("::")[-1]


class NoMatch(Exception):
    """A cross entropy cannot be split; the text says why."""


class _Pattern:
    """The actions of one cross entropy, forward and backward. Raises NoMatch if something else reads the logits."""

    def __init__(self, joint, loss):
        self.loss = loss
        self.readers = {}
        for action in joint.actions:
            for key in action.reads:
                self.readers.setdefault(key, []).append(action)
        log_probabilities, self.target, weight, reduction, self.ignore = loss.args
        if weight is not None or reduction != MEAN or log_probabilities.fake.dim() != 2:
            raise NoMatch("it has weights for classes, forms no mean, or has more than two dimensions")
        self.rows, self.columns = log_probabilities.fake.shape
        logs = log_probabilities
        self.log_cast = joint.makers.get(logs.key)
        if self.log_cast is not None and _name(self.log_cast) == "_to_copy":
            logs = self.log_cast.args[0]
        else:
            self.log_cast = None
        self.logs = logs
        self.softmax = self._maker(joint, logs, "_log_softmax")
        source = self.softmax.args[0]
        self.cast = joint.makers.get(source.key)
        if self.cast is not None and _name(self.cast) == "_to_copy":
            source = self.cast.args[0]
        else:
            self.cast = None
        self.product = joint.makers.get(source.key)
        if self.product is None or _name(self.product) not in ("mm", "addmm"):
            raise NoMatch(f"its logits come from {self.product and _name(self.product)}, not from a matrix product")
        self.left = self.product.args[-2]
        self.loss_back = self._reader(log_probabilities.key, "nll_loss_backward")
        self.softmax_back = self._reader(logs.key, "_log_softmax_backward_data")
        allowed = [self.loss, self.loss_back, self.softmax_back, self.log_cast]
        self._only(log_probabilities.key, allowed)
        self._only(logs.key, allowed)
        self._only(source.key, [self.cast or self.softmax])
        if self.cast:
            self._only(self.cast.writes[0], [self.softmax])
        after = self.readers.get(self.loss_back.writes[0], [])
        self.loss_cast = after[0] if len(after) == 1 and _name(after[0]) == "_to_copy" else None
        self._only(self.loss_back.writes[0], [self.loss_cast or self.softmax_back])
        if self.loss_cast:
            self._only(self.loss_cast.writes[0], [self.softmax_back])
        last = self.softmax_back
        self.cast_back = None
        after = self.readers.get(last.writes[0], [])
        if len(after) == 1 and _name(after[0]) == "_to_copy":
            last = self.cast_back = after[0]
        self.products_back = self.readers.get(last.writes[0], [])
        self.gradient = last.writes[0]
        for action in self.products_back:
            if self.kind(action) is None:
                raise NoMatch(f"{_name(action)} reads the gradient of the logits")

    def kind(self, action):
        """How a product uses the gradient of the logits: its rows are rows of the result, or it sums over them, with the gradient as
        the left or the right factor."""
        if _name(action) != "mm":
            return None
        shapes = [tuple(read.fake.shape) for read in action.args]
        if action.args[0].key == self.gradient:
            return {(self.rows, self.columns): "rows", (self.columns, self.rows): "left"}.get(shapes[0])
        return "right" if shapes[1] == (self.rows, self.columns) else None

    @staticmethod
    def _maker(joint, read, name):
        maker = joint.makers.get(read.key)
        if maker is None or _name(maker) != name:
            raise NoMatch(f"{maker and _name(maker)} stands in the place of {name}")
        return maker

    def _reader(self, key, name):
        found = [action for action in self.readers.get(key, []) if _name(action) == name]
        if len(found) != 1:
            raise NoMatch(f"{len(found)} operations {name} read it")
        return found[0]

    def _only(self, key, allowed):
        others = [_name(action) for action in self.readers.get(key, []) if action not in allowed]
        if others:
            raise NoMatch(f"{', '.join(others)} reads its tensors as well")

    def actions(self):
        found = [self.product, self.cast, self.softmax, self.log_cast, self.loss, self.loss_back, self.loss_cast,
                 self.softmax_back, self.cast_back]
        return [action for action in found if action is not None] + self.products_back


class _Splitter:
    def __init__(self, joint, pattern, parts):
        self.joint, self.pattern = joint, pattern
        self.bounds = [pattern.rows * i // parts for i in range(parts + 1)]
        self.forward, self.backward = [], []

    def _slice(self, read, part, dimension=0):
        cut = View(aten.slice.Tensor, (None, dimension, self.bounds[part], self.bounds[part + 1]), {}, 0, None)
        value = Value(read.storage, read.views + (cut,), read.fake)
        result = Read(value)
        result.state = read.state
        return result

    def _add(self, like, target, args, kwargs, outputs, is_forward, share, suffix, changed=None):
        """An action with its outputs: fakes for new storages, or storages that exist."""
        action = Action(f"{like.name}{suffix}", target, tuple(args), dict(kwargs))
        action.node, action.path = like.node, like.path
        action.is_forward, action.needs_tangents, action.once = is_forward, not is_forward, not is_forward
        action.cost, action.workspace_bytes = int(like.cost * share), int(like.workspace_bytes * share)
        flat = [read for arg in args for read in (arg if isinstance(arg, list) else [arg]) if isinstance(read, Read)]
        action.reads = list(dict.fromkeys(read.key for read in flat))
        action.output_is_single = len(outputs) <= 1
        reads = []
        if changed is not None:
            storage = changed.storage
            before = changed.key
            storage.states += 1
            action.changed_read, action.changes = changed, (before, (storage.number, storage.states - 1))
            action.writes.append(action.changes[1])
            action.outputs.append(None)
            reads.append(Read(Value(storage, (), storage.base)))
        for output in outputs if changed is None else ():
            storage = self.joint._storage(action.name, output) if isinstance(output, torch.Tensor) else output
            action.outputs.append(storage)
            action.writes.append((storage.number, 0))
            reads.append(Read(Value(storage, (), storage.base)))
        (self.forward if is_forward else self.backward).append(action)
        return reads[0] if len(reads) == 1 else reads

    def _rows(self, read, part, dtype=None):
        shape = (self.bounds[part + 1] - self.bounds[part],) + tuple(read.fake.shape[1:])
        return read.fake.new_empty(shape, dtype=dtype or read.fake.dtype)

    def _log_probabilities(self, part):
        p, share = self.pattern, 1 / (len(self.bounds) - 1)
        suffix = f" {part}"
        args = list(p.product.args)
        args[-2] = self._slice(p.left, part)
        value = self._add(p.product, p.product.target, args, p.product.kwargs,
                          [self._rows(Read(Value(p.product.outputs[0], (), p.product.outputs[0].base)), part)], True, share, suffix)
        if p.cast:
            base = p.cast.outputs[0].base
            value = self._add(p.cast, p.cast.target, [value], p.cast.kwargs,
                              [self._rows(p.softmax.args[0], part, base.dtype)], True, share, suffix)
        value = self._add(p.softmax, p.softmax.target, [value, *p.softmax.args[1:]], p.softmax.kwargs,
                          [self._rows(p.logs, part)], True, share, suffix)
        if p.log_cast is None:
            return value, value
        return value, self._add(p.log_cast, p.log_cast.target, [value], p.log_cast.kwargs, [self._rows(p.loss.args[0], part)], True,
                                share, suffix)

    def _sum(self, values, action, target, last):
        """Adds scalars; the sum gets the storage `last`, or a new one."""
        total = values[0]
        for number, value in enumerate(values[1:], 1):
            end = last if last is not None and number == len(values) - 1 else value.fake.new_empty(value.fake.shape)
            total = self._add(action, target, [total, value], {}, [end], True, 0, f" sum {number}")
        return total

    def run(self):
        p = self.pattern
        parts = len(self.bounds) - 1
        logs, sums, weights = [], [], []
        scalar, weight = p.loss.outputs
        for part in range(parts):
            logs.append(self._log_probabilities(part))
            total, count = self._add(p.loss, p.loss.target, [logs[-1][1], self._slice(p.target, part), None, SUM, p.ignore], {},
                                     [scalar.base.new_empty(()), weight.base.new_empty(())], True, 1 / parts, f" {part}")
            sums.append(total)
            weights.append(count)
        total = self._sum(sums, p.loss, aten.add.Tensor, None)
        count = self._sum(weights, p.loss, aten.add.Tensor, weight)
        self._add(p.loss, aten.div.Tensor, [total, count], {}, [scalar], True, 0, " mean")
        self.forward[-1].once = p.loss.once
        self._run_back(logs, count, parts)
        old = set(map(id, p.actions()))
        first = self.joint.actions.index(p.product)
        back = self.joint.actions.index(p.loss_back)
        actions = []
        for place, action in enumerate(self.joint.actions):
            if place == first:
                actions += self.forward
            if place == back:
                actions += self.backward
            if id(action) not in old:
                actions.append(action)
        self.joint.actions = _in_order(actions, self.joint)
        self.joint.forward_count = sum(action.is_forward for action in actions)
        self.joint.makers = {key: action for action in actions for key in action.writes}

    def _run_back(self, logs, count, parts):
        p, share = self.pattern, 1 / parts
        rows = {id(action): [] for action in p.products_back}
        sums = {}
        for part in reversed(range(parts)):
            suffix = f" {part}"
            args = list(p.loss_back.args)
            args[1], args[2], args[6] = logs[part][1], self._slice(p.target, part), count
            gradient = self._add(p.loss_back, p.loss_back.target, args, p.loss_back.kwargs,
                                 [self._rows(p.loss.args[0], part)], False, share, suffix)
            if p.loss_cast:
                gradient = self._add(p.loss_cast, p.loss_cast.target, [gradient], p.loss_cast.kwargs,
                                     [self._rows(p.loss.args[0], part, p.loss_cast.outputs[0].base.dtype)], False, share, suffix)
            args = [gradient, logs[part][0], *p.softmax_back.args[2:]]
            gradient = self._add(p.softmax_back, p.softmax_back.target, args, p.softmax_back.kwargs,
                                 [self._rows(p.loss.args[0], part, p.softmax_back.outputs[0].base.dtype)], False, share, suffix)
            if p.cast_back:
                gradient = self._add(p.cast_back, p.cast_back.target, [gradient], p.cast_back.kwargs,
                                     [self._rows(p.loss.args[0], part, p.cast_back.outputs[0].base.dtype)], False, share, suffix)
            for action in p.products_back:
                base = action.outputs[0].base
                kind = p.kind(action)
                if kind == "rows":
                    rows[id(action)].insert(0, self._add(
                        action, action.target, [gradient, action.args[1]], {},
                        [base.new_empty((self.bounds[part + 1] - self.bounds[part], base.shape[1]))], False, share, suffix))
                    continue
                if kind == "left":
                    turned = Read(Value(gradient.storage, (View(aten.t.default, (None,), {}, 0, None),), gradient.fake))
                    factors = [turned, self._slice(action.args[1], part)]
                else:
                    factors = [self._slice(action.args[0], part, 1), gradient]
                piece = self._add(action, action.target, factors, {}, [base.new_empty(base.shape)], False, share, suffix)
                if base.dtype != torch.float32:  # sums of parts are formed in single precision
                    piece = self._add(action, aten._to_copy.default, [piece], {"dtype": torch.float32},
                                      [base.new_empty(base.shape, dtype=torch.float32)], False, 0, f"{suffix} cast")
                before = sums.get(id(action))
                sums[id(action)] = piece if before is None else self._add(
                    action, aten.add_.Tensor, [before, piece], {}, [], False, 0, f"{suffix} sum", changed=before)
        for action in p.products_back:
            if rows[id(action)]:
                self._add(action, aten.cat.default, [rows[id(action)], 0], {}, [action.outputs[0]], False, 0, " joined")
            else:
                self._add(action, aten._to_copy.default, [sums[id(action)]], {"dtype": action.outputs[0].base.dtype},
                          [action.outputs[0]], False, 0, " rounded")


def _in_order(actions, joint):
    """Each action after those that make what it reads; otherwise the order stays."""
    made = {(s.number, 0) for s in joint.given + joint.tangents + [storage for storage, _ in joint.constants]}
    later, result = [], []
    for action in actions:
        later.append(action)
        moved = True
        while moved:
            moved = False
            for waiting in list(later):
                if all(key in made or joint.storages[key[0]].given for key in waiting.reads):
                    later.remove(waiting)
                    result.append(waiting)
                    made.update(waiting.writes)
                    moved = True
    if later:
        raise NoMatch("its parts depend on one another")
    return sorted(result, key=lambda action: not action.is_forward)


def split_losses(joint, parts):
    """Splits every cross entropy over a product into `parts` parts. Raises NoMatch if there is none that can be split."""
    losses = [action for action in joint.actions if _name(action) == "nll_loss_forward"]
    reasons = [] if losses else ["the module computes no cross entropy"]
    for loss in losses:
        try:
            _Splitter(joint, _Pattern(joint, loss), parts).run()
        except NoMatch as error:
            reasons.append(str(error))
    if len(reasons) >= max(1, len(losses)):
        raise NoMatch("; ".join(reasons))
