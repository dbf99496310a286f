"""Models and trainers."""

import json
import math
import os
import signal

import numpy
import pytest

import remat

SAMPLES = 64


def ring():
    """Points in the plane; the class says whether their distance from the origin is between 0.5 and 1."""
    points = numpy.random.default_rng(7).uniform(-1.5, 1.5, (SAMPLES, 2)).astype(numpy.float32)
    distance = numpy.hypot(points[:, 0], points[:, 1])
    return points, ((distance > 0.5) & (distance < 1)).astype(numpy.int32)


def perceptron(**settings):
    model = remat.Model()
    model.add_layer("input", name="point", input_shape="1:1:2")
    for i in range(4):
        model.add_layer("fully_connected", name=f"fc{i}", unit=32, activation="tanh")
    model.add_layer("fully_connected", name="out", unit=2)
    model.add_layer("cross_entropy", name="loss")
    model.set(batch_size=16, epochs=3, **settings)
    model.set_optimizer("adam", learning_rate=0.01)
    model.compile()
    return model


def train(model, *arguments, **keywords):
    trainer = remat.Trainer(model, *arguments, data=ring(), threads=1, **keywords)
    return trainer, trainer.run()


# ---- models ----


def test_a_model_by_calls():
    model = perceptron(budget="1MiB")
    assert model.batch_size == 16 and model.budget_bytes == 1 << 20
    assert model.parameter_count == 2 * 32 + 32 + 3 * (32 * 32 + 32) + 32 * 2 + 2
    assert model.layers[0].name == "point" and model.layers[0].recompute is None
    assert model.inputs == [remat.SampleField("point", "fp32", 2, (1, 1, 2), 0)]
    assert (model.labels.dtype, model.labels.count, model.labels.bound) == ("int32", 1, 2)
    assert "fc1" in model.summary() and json.loads(model.summary(json=True))["layers"]
    assert json.loads(model.order(json=True))
    with pytest.raises(remat.InvalidError, match="compiled"):
        model.add_layer("input", input_shape="1:1:2")


def test_a_model_from_a_file():
    model = remat.Model.load("examples/models/mlp.ini", settings={"model.batch_size": 8, "fc3.unit": 64})
    assert model.batch_size == 8 and model.budget_bytes is None
    assert {layer.block for layer in model.layers} == {"", "first"}
    assert next(layer for layer in model.layers if layer.name == "fc3").output_shape == (1, 1, 64)
    with pytest.raises(remat.InvalidError):
        remat.Model.load("examples/models/mlp.ini", settings={"fc9.unit": 64})
    with pytest.raises(remat.InputFileError) as caught:
        remat.Model.from_text("[Model]\n[in : input]\ninput_shape = x\n", name="bad.ini")
    assert (caught.value.file, caught.value.line) == ("bad.ini", 3)
    with pytest.raises(remat.InvalidError, match="did you mean"):
        remat.Model().add_layer("fully_conected", unit=3)
    assert "fully_connected" in remat.layer_types() and "unit" in remat.layer_types("fully_connected")


# ---- training ----


def test_weights_have_the_same_bits_within_any_budget():
    kept, result = train(perceptron())
    assert result.steps == 12 == kept.steps_taken and math.isfinite(result.last_loss)
    figures = kept.figures
    assert result.allocated_bytes == figures.total_bytes and figures.budget_bytes is None
    least, same = train(perceptron(), figures.min_budget_bytes, strategy="optimal")
    assert least.figures.total_bytes <= least.figures.budget_bytes == figures.min_budget_bytes
    assert same.last_loss == result.last_loss
    assert kept.parameters.keys() == least.parameters.keys()
    for name, parameter in kept.parameters.items():
        assert (parameter.read() == least.parameters[name].read()).all()
    with pytest.raises(remat.BudgetError) as caught:
        remat.Trainer(perceptron(), 1000, data=ring())
    assert caught.value.smallest_bytes > 1000 and caught.value.budget_bytes == 1000


def test_plans_of_a_trainer(tmp_path):
    model = perceptron()
    trainer = remat.Trainer(model, plan_only=True)
    with pytest.raises(remat.InvalidError):
        trainer.step()
    curve = trainer.curve()
    assert curve.points[0].total_bytes < curve.points[-1].total_bytes and 0 <= curve.knee < len(curve.points)
    assert trainer.graph.check_plan(trainer.graph_plan_json()).peak_bytes == trainer.figures.peak_bytes
    assert trainer.plan.profile.check_plan(trainer.plan_json()).peak_bytes == trainer.plan.peak_bytes
    assert len(trainer.chain.layers) > 1 and trainer.forwards(1) == 1
    trainer.save_plan(tmp_path / "plan.json")
    trainer.save_graph_plan(tmp_path / "graph_plan.json")
    assert remat.Trainer(model, plan_path=tmp_path / "plan.json", plan_only=True).figures.strategy == "plan file"
    read = remat.Trainer(model, graph_plan_path=tmp_path / "graph_plan.json", plan_only=True)
    assert read.figures.strategy == "graph plan file"
    graph = trainer.graph
    trainer.close()
    with pytest.raises(ValueError, match="closed"):
        trainer.figures
    assert len(graph.actions) > 4  # it keeps the trainer
    with pytest.raises(remat.InvalidError, match="cannot be changed"):
        graph.add_tensor(3)
    assert remat.Trainer.largest_batch(model, "4MB") > 16


def test_arrays_are_checked():
    model, (points, labels) = perceptron(), ring()
    with pytest.raises(remat.InvalidError, match="have 3 values a sample, and the layer 'point' reads 2"):
        remat.Trainer(model, data=(numpy.zeros((SAMPLES, 3)), labels))
    with pytest.raises(remat.InvalidError, match="reads whole numbers"):
        remat.Trainer(model, data=(points, labels.astype(float)))
    with pytest.raises(remat.InvalidError, match="64 samples of inputs and 63 of labels"):
        remat.Trainer(model, data=(points, labels[:-1]))
    with pytest.raises(remat.InvalidError, match="has 1 inputs"):
        remat.Trainer(model, data=([points, points], labels))
    with pytest.raises(remat.InvalidError, match="needs labels"):
        remat.Trainer(model, data=(points, None))
    with pytest.raises(remat.InvalidError, match="32 bits"):
        remat.Trainer(model, data=(points, labels.astype(numpy.int64) + (1 << 33)))
    with pytest.raises(remat.InvalidError, match="reads numbers"):
        remat.Trainer(model, data=(points.astype(str), labels))
    with pytest.raises(TypeError, match="pair"):
        remat.Trainer(model, data=points)
    with pytest.raises(TypeError, match="goes with data"):
        remat.Trainer(model, validation_data=(points, labels))
    # Other element types and orders are converted.
    for given in ((points.astype(float), labels.astype(numpy.int64)), (numpy.asfortranarray(points), labels)):
        assert remat.Trainer(model, data=given).step().loss == remat.Trainer(model, data=(points, labels)).step().loss


def test_a_function_writes_the_same_samples():
    points, labels = ring()

    def sample(number, inputs, to):
        inputs[0][:] = points[number]
        to[:] = labels[number]

    _trainer, result = train(perceptron())
    other = remat.Trainer(perceptron(), sample=sample, samples=SAMPLES, threads=1)
    assert other.run().last_loss == result.last_loss


def test_validation():
    points, labels = ring()
    seen = []
    trainer = remat.Trainer(perceptron(), data=(points[:48], labels[:48]), validation_data=(points[48:], labels[48:]))
    result = trainer.run(on_validation=lambda step, result: seen.append((step, result)))
    assert trainer.figures.training_samples == 48 and trainer.figures.validation_samples == 16
    assert [step for step, _result in seen] == [3, 6, 9]
    assert seen[-1][1] == trainer.validate() and trainer.validate().samples == 16
    assert result.best_validation_loss == min(validation.loss for _step, validation in seen)


def test_callbacks_end_a_run():
    trainer = remat.Trainer(perceptron(), data=ring())
    result = trainer.run(on_step=lambda step: step.step < 2)
    assert result.stopped and trainer.steps_taken == 2

    def fail(step):
        raise KeyError(step.step)

    with pytest.raises(KeyError, match="3"):
        trainer.run(on_step=fail)
    assert trainer.steps_taken == 3
    assert not trainer.run().stopped and trainer.steps_taken == 12

    def broken(number, inputs, labels):
        raise ZeroDivisionError(f"sample {number}")

    with pytest.raises(ZeroDivisionError, match="sample"):
        remat.Trainer(perceptron(), sample=broken, samples=SAMPLES).step()


def test_an_interrupt_ends_a_run_after_the_step():
    trainer = remat.Trainer(perceptron(), data=ring())
    with pytest.raises(KeyboardInterrupt):
        trainer.run(on_step=lambda step: os.kill(os.getpid(), signal.SIGINT))
    taken = trainer.steps_taken
    assert 0 < taken < 12
    assert trainer.run().steps == 12 - taken


def test_a_training_goes_on_from_a_file(tmp_path):
    whole, _result = train(perceptron())
    first = remat.Trainer(perceptron(), data=ring(), threads=1)
    first.check_save(tmp_path / "weights.safetensors")
    first.run(on_step=lambda step: step.step < 5, log_path=tmp_path / "log.jsonl")
    first.save(tmp_path / "weights.safetensors")
    second = remat.Trainer(perceptron(), data=ring(), threads=1)
    second.resume(tmp_path / "weights.safetensors")
    assert second.steps_taken == 5
    second.run()
    for name, parameter in whole.parameters.items():
        assert (parameter.read() == second.parameters[name].read()).all()
    report = remat.Report()
    report.add("trainer", second)
    report.add_run("log", tmp_path / "log.jsonl")
    assert len(report) == 2
    second.report(tmp_path / "page.html", curve=False)
    with pytest.raises(remat.FileError):
        second.save(tmp_path / "no folder" / "weights.safetensors")
    with pytest.raises(remat.FileError):
        second.load(tmp_path / "none.safetensors")


def test_a_training_that_diverges():
    points, labels = ring()
    with pytest.raises(remat.DivergedError) as caught:
        remat.Trainer(perceptron(), data=(points * numpy.nan, labels)).run()
    assert caught.value.status == remat.Status.DIVERGED and math.isnan(caught.value.result.last_loss)


def test_the_memory_of_a_trainer_is_given_back():
    model = perceptron()
    context = model._handle.context
    remat.Trainer(model, data=ring()).close()
    before = remat._library.lib.remat_context_bytes(context.pointer)
    trainer = remat.Trainer(model, data=ring())
    trainer.on_gradient(lambda name, gradient: None)
    trainer.run(on_step=lambda step: step.step < 2)
    assert remat._library.lib.remat_context_bytes(context.pointer) > before
    del trainer
    assert remat._library.lib.remat_context_bytes(context.pointer) == before
    with remat.Trainer(model, data=ring()) as trainer:
        trainer.step()
    assert remat._library.lib.remat_context_bytes(context.pointer) == before
    assert repr(trainer) == "<remat.Trainer: closed>"


def test_a_model_that_is_not_compiled():
    model = remat.Model()
    model.add_layer("input", input_shape="1:1:2")
    assert len(model.layers) == 0 and model.parameter_count == 0 and model.inputs == [] and "0 layers" in repr(model)
    with pytest.raises(remat.InvalidError, match="not compiled"):
        model.summary()
    with pytest.raises(remat.InvalidError, match="not compiled"):
        remat.Trainer(model, data=ring())
    with pytest.raises(remat.InvalidError, match="no loss"):
        remat.Trainer(model)
    assert model.batch_size > 0


# ---- parameters and observers ----


def test_parameters_are_read_and_written():
    trainer = remat.Trainer(perceptron(), data=ring())
    trainer.step()
    weight = trainer.parameters["fc1.weight"]
    assert weight.shape == (32, 32) and weight.count == 1024 and weight.dtype == "fp32" and weight.trained
    out = numpy.empty(weight.shape, numpy.float32)
    assert weight.read(out) is out
    weight.write(out * 2)
    assert (weight.read() == out * 2).all()
    assert weight.moment_count == 2 and weight.read_moment(1).any()
    weight.write_moment(1, numpy.zeros(weight.shape))
    assert not weight.read_moment(1).any()
    with pytest.raises(remat.InvalidError):
        weight.read(numpy.empty(3, numpy.float32))
    with pytest.raises(remat.InvalidError):
        weight.write(numpy.zeros(3))
    with pytest.raises(remat.InvalidError):
        weight.read_moment(2)


def test_gradients_and_actions_are_shown():
    trainer = remat.Trainer(perceptron(), data=ring())
    seen, actions, kept = {}, [], []
    trainer.on_gradient(lambda name, gradient: seen.update({name: gradient.copy()}))
    trainer.on_action(actions.append)
    trainer.step()
    assert seen.keys() == trainer.parameters.keys()
    assert seen["fc1.weight"].shape == (32, 32) and seen["fc1.weight"].any()
    assert {"load", "forward", "weight_gradient", "apply"} <= {action.phase for action in actions}
    assert max(action.live_bytes for action in actions) == trainer.figures.peak_bytes
    count = len(actions)
    trainer.on_action(None)
    trainer.on_gradient(lambda name, gradient: kept.append(gradient[0]))
    with pytest.raises(remat.InvalidError, match="copy what you keep"):
        trainer.step()
    trainer.on_gradient(None)
    trainer.step()
    assert len(actions) == count


def test_costs_are_measured():
    trainer = remat.Trainer(perceptron(), data=ring())
    assert trainer.measurement.steps == 0
    profile = trainer.measure(repeats=3)
    assert profile.cost_unit == "ns" and trainer.measurement.steps == 3
    del trainer
    assert len(profile.layers) > 1


def test_the_best_weights_come_back(tmp_path):
    """48 points are learned by heart, and the loss of the other 16 rises sooner or later."""
    points, labels = ring()
    parts = (points[:48], labels[:48]), (points[48:], labels[48:])
    trainer = remat.Trainer(
        perceptron(early_stopping=2), data=parts[0], validation_data=parts[1], threads=1, steps=400
    )
    assert trainer.figures.early_stopping == 2
    losses = {}
    best = tmp_path / "best.safetensors"
    result = trainer.run(on_validation=lambda step, found: losses.__setitem__(step, found.loss), best_path=best)
    assert result.stopped_early and result.restored_best and best.exists()
    assert result.best_step == min(losses, key=lambda step: losses[step]) == trainer.steps_taken
    assert trainer.validate().loss == losses[result.best_step] == result.best_validation_loss
