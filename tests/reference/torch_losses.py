#!/usr/bin/env python3
"""Trains a model file in PyTorch from the weights that `remat` starts with, on the same batches, and prints the loss of
every step. With --compare it runs `remat` as well and says how far the two are apart; with --record it writes the
losses down for the tests, which need neither Python nor PyTorch.

    REMAT=build/remat tests/reference/torch_losses.py examples/models/convnet.ini --compare
"""
import argparse
import contextlib
import json
import math
import os
import subprocess
import sys
import tempfile

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import torch

from ini_model import read_model
from made_data import Data
from torch_model import TorchModel, read_safetensors

NOTE = ("Losses of PyTorch from the weights that remat makes of the seed. They hold as long as the model file, the "
        "first weights and the made-up data stay what they are; weight_squares is the sum of squares of the first "
        "weights.")


def rate_of(model, step, total):
    """The learning rate of a step counted from 0."""
    def get(key, standard, make=float):
        return model.get("optimizer", key, standard, make)

    full, least, warm = get("learning_rate", 0.001), get("min_rate", 0), get("warmup_steps", 0, int)
    end, kind = get("decay_steps", 0, int) or total, get("schedule", "constant", str)
    if step < warm:
        return full * (step + 1) / warm
    if kind == "step":
        size = get("step_size", 0, int)
        return max(least, full * get("gamma", 0.1) ** ((step - warm) // size)) if size else full
    if kind == "constant":
        return full
    share = min(1.0, (step - warm) / max(1, end - warm))
    return full + (least - full) * share if kind == "linear" else least + (full - least) * (
        1 + math.cos(math.pi * share)) / 2


def train(path, weights, steps, dtype, place="cpu", halves=False, reverse=False):
    """The losses, and the model as it is in the end. `halves`: matrix products in bf16, as autocast does them. `reverse`: sums over
    the samples of a batch have another order."""
    model = read_model(path)
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    with torch.device(place) if place != "cpu" else contextlib.nullcontext():
        net = TorchModel(model, dtype)
    net.load(weights)
    data = Data(model, net.fields, net.seed)
    optimizer = net.optimizer()
    size = model.get("model", "batch_size", 1, int)
    micro_batches = model.get("model", "accumulate", 1, int)
    clip = model.get("model", "clip_norm", 0, float)
    per_epoch = data.samples // (size * micro_batches) * micro_batches
    losses = []
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate_of(model, step, steps)
        optimizer.zero_grad(set_to_none=False)
        total = 0.0
        for _ in range(micro_batches):
            epoch, part = divmod(net.step, per_epoch)
            with torch.autocast(place, torch.bfloat16, enabled=halves):
                batch = net.batch(data.batch(epoch, part * size, size))
                loss = net.loss([values.flip(0) for values in batch] if reverse else batch)
            (loss / micro_batches).backward()
            total += loss.item() / micro_batches
            net.step += 1
        if clip:
            torch.nn.utils.clip_grad_norm_(list(net.parameters.values()), clip)
        optimizer.step()
        losses.append(total)
    return losses, net


def run_remat(program, path, *options):
    try:
        code = subprocess.run([program, "train", path, "--quiet", *options], stdout=subprocess.DEVNULL).returncode
    except OSError as error:
        raise SystemExit("%s cannot be run (%s); set REMAT to the program" % (program, error.strerror))
    if code:
        raise SystemExit("%s train %s ended with code %d" % (program, path, code))


def first_weights(program, path, folder):
    file = os.path.join(folder, "first.safetensors")
    run_remat(program, path, "--steps", "0", "--weights-only", "--save", file)
    return file


def farthest_weights(net, file):
    """The largest difference of a value in the end, as a share of the largest value of its tensor."""
    ours, worst = read_safetensors(file), (0.0, "")
    for name, value in {**net.parameters, **net.statistics}.items():
        mine = torch.from_numpy(ours[name]).to(value)
        apart = ((value.detach() - mine).abs().max() / value.detach().abs().max().clamp_min(1e-30)).item()
        worst = max(worst, (apart, name))
    return worst


def compare(program, path, weights_file, losses, net, options, folder):
    log, end = os.path.join(folder, "log.jsonl"), os.path.join(folder, "end.safetensors")
    run_remat(program, path, "--steps", str(len(losses)), "--weights", weights_file, "--weights-only", "--log", log,
              "--save", end, *options)
    with open(log) as file:
        lines = [json.loads(line) for line in file]
    ours = [line["loss"] for line in lines if "rate" in line]
    if len(ours) != len(losses):
        raise SystemExit("remat logged %d steps, not %d" % (len(ours), len(losses)))
    worst = 0.0
    for step, (mine, theirs) in enumerate(zip(ours, losses), 1):
        apart = abs(mine - theirs) / max(1.0, abs(theirs))
        worst = max(worst, apart)
        print("step %3d  remat %.9f  torch %.9f  apart %.1e" % (step, mine, theirs, apart))
    print("%s: at most %.1e apart; weights after the last step: %.1e of the tensor's largest, %s"
          % (path, worst, *farthest_weights(net, end)))
    return worst


def record(to, path, double, weights, losses):
    text = {
        "model": path,
        "made_by": "tests/reference/torch_losses.py %s --steps %d%s --record %s"
                   % (path, len(losses), " --double" if double else "", to),
        "note": NOTE,
        "torch": torch.__version__,
        "weight_squares": sum(float((value.astype("f8") ** 2).sum()) for value in weights.values()),
        "losses": [float("%.10g" % loss) for loss in losses],
    }
    with open(to, "w") as file:
        file.write(json.dumps(text, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--weights", help="a safetensors file to start from (default: what remat starts with)")
    parser.add_argument("--remat", default=os.environ.get("REMAT", "build/remat"), help="the program")
    parser.add_argument("--double", action="store_true", help="compute in double precision")
    parser.add_argument("--compare", action="store_true", help="run remat as well; fail where 1e-5 is not held")
    parser.add_argument("--options", default="", help="more options for that run, such as '--strategy full'")
    parser.add_argument("--place", default="cpu", help="where PyTorch computes: cpu or cuda")
    parser.add_argument("--halves", action="store_true", help="matrix products of PyTorch in bf16 (autocast)")
    parser.add_argument("--reverse", action="store_true",
                        help="each batch in reverse order, which shows how much PyTorch's losses depend on the order of sums")
    parser.add_argument("--record", metavar="FILE.json", help="write the losses down for the tests")
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    with tempfile.TemporaryDirectory() as folder:
        file = given.weights or first_weights(given.remat, given.model, folder)
        weights = read_safetensors(file)
        losses, net = train(given.model, weights, given.steps, torch.float64 if given.double else torch.float32,
                            given.place, given.halves, given.reverse)
        if given.record:
            record(given.record, given.model, given.double, weights, losses)
        if not given.compare:
            print("\n".join("%.9f" % loss for loss in losses))
            return 0
        return compare(given.remat, given.model, file, losses, net, given.options.split(), folder) > 1e-5


if __name__ == "__main__":
    sys.exit(main())
