"""The examples of docs/pytorch.md run, one after the other, as they stand there."""
import re

import pytest


def test_the_examples_of_the_page_run(tmp_path, monkeypatch, capsys):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    with open("docs/pytorch.md", encoding="utf-8") as file:
        examples = re.findall(r"^```python\n(.*?)^```", file.read(), re.MULTILINE | re.DOTALL)
    assert len(examples) == 3
    monkeypatch.chdir(tmp_path)
    names = {}
    for example in examples:
        exec(compile(example, "docs/pytorch.md", "exec"), names)
    output = capsys.readouterr().out
    assert "everything kept" in output and "predicted peak" in output and "is too small" in output
    for planned in ("planned", "planned_resnet", "planned_unet"):
        plan = names[planned].plan
        assert plan.recomputed > 0 and plan.peak_bytes <= plan.budget_bytes < plan.base_peak_bytes
    assert names["memory"].peak_bytes <= names["planned_resnet"].plan.budget_bytes
    assert (tmp_path / "resnet.html").stat().st_size > 10000
