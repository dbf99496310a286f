"""Trained models: predictions and evaluations."""

import json

import numpy
import pytest

import remat


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A model of the examples' spirals, and weights after a few epochs."""
    path = tmp_path_factory.mktemp("weights") / "weights.safetensors"
    model = remat.Model.load("examples/models/spirals.ini", settings={"model.epochs": 20})
    trainer = remat.Trainer(model, threads=1)
    trainer.run()
    trainer.save(path, with_state=False)
    return model, path


def points(count):
    return numpy.random.default_rng(3).uniform(-1, 1, (count, 2)).astype(numpy.float32)


def test_any_number_of_samples_is_predicted(trained):
    predictor = remat.Predictor(*trained)
    assert predictor.batch_size == 16 and predictor.classes == ["0", "1"]
    inputs = points(37)
    outputs = predictor.predict(inputs)
    assert outputs.shape == (37, 1, 1, 2) and outputs.flags.owndata
    batch = predictor.run_batch(inputs[:16])
    assert not batch.flags.owndata and not batch.flags.writeable
    assert (batch == outputs[:16]).all()
    with pytest.raises(ValueError, match="a batch has 16 samples"):
        predictor.run_batch(inputs)
    predictor.close()
    assert (batch == outputs[:16]).all()  # the array keeps the memory
    with pytest.raises(ValueError, match="closed"):
        predictor.predict(inputs)


def test_samples_of_the_data(trained, tmp_path):
    with remat.Predictor(*trained) as predictor:
        assert predictor.sample_count > 16
        assert predictor.run_samples(0).shape[0] == 16
        assert predictor.row(0) >= 1 and predictor.file(0) is None
        with pytest.raises(remat.InvalidError):
            predictor.run_samples(predictor.sample_count)
        table = predictor.table(samples=5)
        assert len(table.splitlines()) == 6
        predictor.save_table(tmp_path / "table.csv", samples=5)
        assert (tmp_path / "table.csv").read_text() == table


def test_evaluations(trained, tmp_path):
    evaluation = remat.Evaluation(*trained)
    figures = evaluation.figures
    assert figures.classes == 2 and 0.5 < figures.accuracy <= 1 and figures.samples == figures.rows
    confusion = evaluation.confusion
    assert confusion.sum() == figures.rows and confusion.trace() == round(figures.accuracy * figures.rows)
    assert [row.rows for row in evaluation.classes] == confusion.sum(axis=1).tolist()
    assert json.loads(evaluation.to_text(json=True)) and "accuracy" in evaluation.to_text()
    evaluation.save(tmp_path / "evaluation.json")
    assert (tmp_path / "evaluation.json").read_text() == evaluation.to_text(json=True)


def test_evaluations_of_arrays(trained):
    model, path = trained
    inputs = points(21)
    labels = remat.Predictor(model, path).predict(inputs).reshape(21, 2).argmax(axis=1)
    evaluation = remat.Evaluation(model, path, data=(inputs, labels))
    assert evaluation.figures.samples == 21 and evaluation.figures.accuracy == 1


def test_evaluations_of_yes_and_no(tmp_path):
    model = remat.Model.from_text(
        "[Model]\nbatch_size = 4\n[in : input]\ninput_shape = 1:1:2\n[out : fully_connected]\nunit = 3\n"
        "[loss : binary_cross_entropy]\n"
    )
    inputs = points(16)
    labels = numpy.stack([inputs[:, 0] > 0, inputs[:, 1] > 0, inputs[:, 0] > 9], axis=1).astype(numpy.float32)
    path = tmp_path / "weights.safetensors"
    remat.Trainer(model, data=(inputs, labels), steps=2).save(path)
    evaluation = remat.Evaluation(model, path, data=(inputs, labels))
    assert evaluation.figures.targets == 3 and evaluation.classes == []
    first, second, never = evaluation.targets
    assert (first.name, first.rows, first.positives) == ("0", 16, int(labels[:, 0].sum()))
    assert 0 <= second.accuracy <= 1 and never.positives == 0


def test_texts_are_continued(tmp_path):
    model = remat.Model.from_text(
        "[Model]\nbatch_size = 2\n[in : input]\ninput_shape = 1:1:8\n[table : embedding]\nin_dim = 256\nout_dim = 8\n"
        "[out : fully_connected]\nunit = 256\n[loss : cross_entropy]\n"
    )
    text = numpy.frombuffer(b"abcdefgh" * 9, numpy.uint8).astype(numpy.int32)
    windows = numpy.lib.stride_tricks.sliding_window_view(text, 9)
    trainer = remat.Trainer(model, data=(windows[:, :8], windows[:, 1:]), steps=3)
    trainer.run()
    trainer.save(tmp_path / "weights.safetensors")
    predictor = remat.Predictor(model, tmp_path / "weights.safetensors")
    made = predictor.generate("abc", count=10, seed=1)
    assert len(made) == 10 and made == predictor.generate("abc", count=10, seed=1)
    with pytest.raises(remat.InputFileError, match="the number 256; it must be from 0 to 255"):
        predictor.predict(numpy.full((2, 8), 256))
    with pytest.raises(remat.FileError):
        remat.Predictor(model, tmp_path / "none")
