"""The examples of docs/python.md run, one after the other, as they stand there."""

import re

import numpy

import remat


def test_the_examples_of_the_manual_run(tmp_path, monkeypatch, capsys):
    with open("docs/python.md", encoding="utf-8") as file:
        examples = re.findall(r"^```python\n(.*?)^```", file.read(), re.MULTILINE | re.DOTALL)
    assert len(examples) >= 7
    monkeypatch.chdir(tmp_path)
    names = {}
    for example in examples:
        exec(compile(example, "docs/python.md", "exec"), names)
    output = capsys.readouterr().out
    assert "recompute forward" in output and "keep" in output
    assert (tmp_path / "page.html").stat().st_size > 10000
    assert names["placement"].height == names["placement"].lower_bound == 1100
    assert names["ranges"]["offset"].max() == 9 * 4096
    accuracy = remat.Evaluation(names["model"], "ring.safetensors", data=(names["points"], names["labels"]))
    assert accuracy.figures.accuracy > 0.8
    assert isinstance(names["weight"].read(), numpy.ndarray)
