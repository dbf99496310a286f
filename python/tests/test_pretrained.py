"""Folders in Hugging Face's layout: training adapters, tokenizers, texts."""

import json
import os
import shutil

import numpy
import pytest

import remat

LLAMA = "tests/reference/pretrained/llama"
SETTINGS = {"model.length": 12, "model.batch_size": 2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model with a tokenizer whose tokens it has, and random weights."""
    path = tmp_path_factory.mktemp("model")
    tokenizer = remat.Tokenizer.train(["README.md"], 300)
    tokenizer.save(path / "tokenizer.json")
    (path / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|endoftext|>"}))
    with open(os.path.join(LLAMA, "config.json"), encoding="utf-8") as file:
        config = dict(json.load(file), vocab_size=len(tokenizer))
    (path / "config.json").write_text(json.dumps(config))
    model = remat.Model.load(path, {"model.length": 16, "dataset.type": "random"})
    remat.Trainer(model, strategy="none", threads=1, steps=1).save_folder(path)
    return path


def test_adapters_are_trained_and_merged(folder, tmp_path):
    (tmp_path / "learn.jsonl").write_text('{"prompt": "one and one is", "completion": " two"}\n' * 8)
    settings = {"model.length": 16, "model.batch_size": 2, "optimizer.learning_rate": 0.02}
    model = remat.Model.load(folder, {**settings, "model.lora": "rank=2", "model.frozen": "bf16"})
    trainer = remat.Trainer(model, budget="64MiB", threads=1, steps=30, data_path=tmp_path / "learn.jsonl")
    trainer.load(folder)
    first = trainer.step().loss
    trainer.run()
    assert trainer.step().loss < first  # it goes on after the run
    trainer.check_save_folder(tmp_path / "adapter")
    trainer.save_folder(tmp_path / "adapter")
    assert sorted(os.listdir(tmp_path / "adapter")) == ["adapter_config.json", "adapter_model.safetensors"]
    # The adapter on the model, and merged with it.
    adapted = remat.Model.load(folder, {"model.length": 16, "model.adapter": tmp_path / "adapter"})
    adapted.convert_weights(folder, str(tmp_path / "merged") + "/")
    tokens = numpy.arange(16, dtype="int32").reshape(1, 16)
    wanted = remat.Predictor(adapted, folder, threads=1).predict(tokens)
    merged = remat.Model.load(tmp_path / "merged", {"model.length": 16})
    found = remat.Predictor(merged, tmp_path / "merged", threads=1).predict(tokens)
    assert numpy.allclose(found, wanted, atol=1e-4)


def test_broken_folders_are_named(tmp_path):
    with pytest.raises(remat.FileError, match="config.json"):
        remat.Model.load(tmp_path)
    shutil.copy(os.path.join(LLAMA, "config.json"), tmp_path)
    model = remat.Model.load(tmp_path, {**SETTINGS, "dataset.type": "random"})
    with pytest.raises(remat.Error, match="model.safetensors"):
        remat.Trainer(model, strategy="none", threads=1, steps=1).load(tmp_path)


def test_tokenizers_encode_and_decode(folder):
    tokenizer = remat.Tokenizer.load(folder)
    assert len(tokenizer) == 300 and "300 tokens" in repr(tokenizer)
    ids = tokenizer.encode("within a budget of bytes: naïve 世界")
    assert ids.dtype == numpy.int32 and len(ids) > 5
    assert tokenizer.decode(ids) == "within a budget of bytes: naïve 世界"
    assert tokenizer.decode([]) == "" and len(tokenizer.encode("")) == 0
    end = tokenizer.find("<|endoftext|>")
    assert end == 0 and tokenizer.is_special(end) and tokenizer.token(end) == "<|endoftext|>"
    assert tokenizer.find("no such token") is None
    assert tokenizer.decode([end]) == "" and tokenizer.decode([end], special=True) == "<|endoftext|>"
    with pytest.raises(IndexError):
        tokenizer.token(300)
    with pytest.raises(TypeError):
        remat.Tokenizer()
    trained = remat.Tokenizer.train(["README.md"], 280, special=["<a>", "<b>"])
    assert json.loads(trained.json())["model"]["type"] == "BPE" and trained.find("<b>") == 1


def test_samples_become_rows(folder, tmp_path):
    path = tmp_path / "samples.jsonl"
    path.write_text('{"text": "one two three"}\n{"prompt": "one", "completion": " two"}\n')
    tokenizer = remat.Tokenizer.load(folder)
    packed, apart = tokenizer.samples(path, 64), tokenizer.samples(path, 64, pack=False)
    assert packed.figures.samples == 2 and packed.figures.rows == 1 and apart.figures.rows == 2
    assert "2 samples in 1 rows" in repr(packed)
    row = packed.rows[0]
    assert row.ids.shape == (64,) and set(row.segments) == {-1, 0, 1}
    assert (row.labels >= 0).sum() == packed.figures.learned == apart.figures.learned
    del tokenizer, packed
    assert row.positions[0] == 0  # the arrays keep the samples
    path.write_text('{"text": "one"}\n[]\n')
    with pytest.raises(remat.InputFileError, match="line 2|:2"):
        remat.Tokenizer.load(folder).samples(path)


def test_texts_are_written(folder):
    with remat.Generator(folder, cache=64, threads=1) as generator:
        assert generator.figures.vocabulary == 300 and generator.figures.cache == 64
        assert generator.figures.total_bytes >= generator.figures.weight_bytes + generator.figures.cache_bytes
        pieces = []
        text = generator.write("The budget", count=12, temperature=0, emit=pieces.append)
        assert "".join(pieces) == text == generator.write("The budget", count=12, temperature=0)
        assert generator.write("The budget", count=12, temperature=0, emit=lambda piece: False) == pieces[0]
        with pytest.raises(ZeroDivisionError):
            generator.write("The budget", emit=lambda piece: 1 // 0)
        # Tokens one by one give the logits of tokens together.
        generator.clear()
        together = generator.feed([1, 2, 3])
        generator.clear()
        for token in (1, 2, 3):
            logits = generator.feed([token])
        assert together.shape == (300,) and numpy.allclose(logits, together, atol=1e-5)
        with pytest.raises(remat.InvalidError):
            generator.feed([300])
    with pytest.raises(ValueError, match="closed"):
        generator.feed([1])
    assert repr(generator) == "<remat.Generator: closed>"
