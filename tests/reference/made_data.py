"""The batches that `remat train` sees, made a second time: random data, text, and the order of an epoch. Every number
is a function of the seed (Philox 4x32-10)."""
import os

import numpy as np

FIELD_STREAM, SHUFFLE_STREAM = 0xE0000000, 0xF0000000
LOW = np.uint64(0xFFFFFFFF)


def philox(block, stream, step, seed):
    """Four 32-bit words for every number in `block`: a row of the result each."""
    block = np.asarray(block, np.uint64)
    a, b = block & LOW, block >> np.uint64(32)
    c, d = np.full_like(a, stream), np.full_like(a, step)
    key0, key1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        first, second = np.uint64(0xD2511F53) * a, np.uint64(0xCD9E8D57) * c
        a, b, c, d = ((second >> np.uint64(32)) ^ b ^ np.uint64(key0), second & LOW,
                      (first >> np.uint64(32)) ^ d ^ np.uint64(key1), first & LOW)
        key0, key1 = (key0 + 0x9E3779B9) & 0xFFFFFFFF, (key1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack([a, b, c, d], axis=-1)


def kept(count, rate, layer, step, seed):
    """Which of `count` values a dropout layer keeps."""
    words = philox(np.arange((count + 3) // 4), layer, step, seed).reshape(-1)[:count]
    return (words >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24) < np.float32(1 - rate)


def normals(words):
    """Box and Muller's transform of pairs, each operation rounded to single precision."""
    radius_bits, turn_bits = (words[..., 0::2] >> np.uint64(8)), (words[..., 1::2] >> np.uint64(8))
    share = (radius_bits.astype(np.float32) + np.float32(1)) * np.float32(2.0**-24)
    logarithm = np.log(share.astype(np.float64)).astype(np.float32)
    radius = np.sqrt(np.float32(-2) * logarithm)
    angle = np.float32(2 * np.pi) * (turn_bits.astype(np.float32) * np.float32(2.0**-24))
    angle = angle.astype(np.float64)
    pairs = [radius * np.cos(angle).astype(np.float32), radius * np.sin(angle).astype(np.float32)]
    return np.stack(pairs, axis=-1).reshape(words.shape)


def random_field(number, sample, values, bound, seed):
    """Field `number` of a sample: whole numbers below `bound`, or normal ones where that is 0."""
    blocks = (values + 3) // 4
    words = philox(sample * blocks + np.arange(blocks), FIELD_STREAM + number, 0, seed)
    made = (words * np.uint64(bound)) >> np.uint64(32) if bound else normals(words)
    return made.reshape(-1)[:values].astype(np.int64 if bound else np.float32)


def place_in_epoch(count, seed, epoch, position):
    """The sample at a position of a shuffled epoch: a Feistel network that is walked until it lands inside."""
    bits = max(6, (count - 1).bit_length())

    def network(value):
        low_bits, high_bits = bits // 2, bits - bits // 2
        for turn in range(8):
            low, high = value & ((1 << low_bits) - 1), value >> low_bits
            word = int(philox([turn << 32 | low], SHUFFLE_STREAM + (epoch >> 32), epoch & 0xFFFFFFFF, seed)[0, 0])
            high ^= word & ((1 << high_bits) - 1)
            value = low << high_bits | high
            low_bits, high_bits = high_bits, low_bits
        return value

    value = network(position)
    while value >= count:
        value = network(value)
    return value


class Data:
    """Batches for a model. `fields` are (values of a sample, bound or 0), the labels last."""

    def __init__(self, model, fields, seed):
        self.fields, self.seed = fields, seed
        self.shuffle = model.get("dataset", "shuffle", "true") == "true"
        self.text = None
        samples = model.get("dataset", "samples", 1024, int)
        kind = model.get("dataset", "type", "none").lower()
        if kind == "text":
            names = [name.strip() for name in model.get("dataset", "inputs", "").split(",")]
            parts = [open(os.path.join(model.folder, name), "rb").read() for name in names]
            self.text = np.frombuffer(b"".join(parts), np.uint8).astype(np.int64)
            samples = (len(self.text) - 1) // fields[0][0]
        elif kind != "random":
            raise SystemExit("only datasets of type random and text are known here, not '%s'" % kind)
        # Halves go away from zero, as C rounds.
        self.samples = samples - int(samples * model.get("dataset", "validation_split", 0, float) + 0.5)

    def sample(self, number):
        if self.text is not None:
            window = self.fields[0][0]
            both = self.text[number * window:(number + 1) * window + 1]
            return [both[:-1], both[1:]]
        return [random_field(i, number, values, bound, self.seed) for i, (values, bound) in enumerate(self.fields)]

    def batch(self, epoch, position, size):
        """A list of arrays [size, values], the labels last."""
        numbers = range(position, position + size)
        if self.shuffle:
            numbers = [place_in_epoch(self.samples, self.seed, epoch, number) for number in numbers]
        return [np.stack(field) for field in zip(*(self.sample(number) for number in numbers))]
