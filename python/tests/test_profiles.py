"""Profiles of chains, their plans and their curves."""

import pytest

import remat

EXAMPLE = "examples/transformer.json"


def small():
    profile = remat.Profile("small", cost_unit="flop", input_bytes=512)
    for i in range(6):
        profile.add_layer("ffn" if i % 2 else "attention", 1024 + 512 * i, 1000, output_bytes=512)
    return profile


def test_what_was_added_can_be_read_back():
    profile = remat.Profile(input_bytes="1KiB", input_gradient_bytes=7, loss_workspace_bytes=9)
    mode = remat.Mode("half", activation_bytes=50, forward_cost=11, lossless=False)
    assert profile.add_layer("norm", 100, 10, name="n", index=5, backward_cost=33, modes=[mode]) == 0
    assert profile.add_layer("other", "1KB", 20) == 1
    assert (profile.input_bytes, profile.input_gradient_bytes, profile.loss_workspace_bytes) == (1024, 7, 9)
    layer = profile.layers[0]
    assert (layer.name, layer.index, layer.type, layer.recompute_flops) == ("n", 5, "norm", 10)
    assert [kind.name for kind in layer.modes] == ["keep", "half"]
    assert layer.modes[0].activation_bytes == 100 and layer.modes[0].backward_cost == 33
    assert layer.modes[1].activation_bytes == 50 and not layer.modes[1].lossless
    assert layer.cost_ratio == 0.1
    assert profile.layers[1].modes[0].activation_bytes == 1000
    assert remat.LAYER_TYPES == ("attention", "ffn", "embedding", "norm", "other")


def test_plans_and_curves_agree():
    profile = small()
    curve = profile.curve()
    assert curve.method in ("exhaustive", "intervals") and 0 <= curve.knee < len(curve)
    for i, point in enumerate(curve):
        plan = profile.plan(point.peak_bytes)
        assert (plan.peak_bytes, plan.total_cost) == tuple(point)
        assert plan.lower_bound_cost <= plan.total_cost
        assert curve.plan(i).decisions == plan.decisions
    assert curve.plan(-1).total_cost == plan.base_cost
    with pytest.raises(IndexError):
        curve.plan(len(curve))
    assert set(plan.decisions) == {"keep"} and set(plan.forwards) == {1}


def test_the_schedule_of_a_plan_can_be_simulated():
    profile = small()
    plan = profile.plan(profile.curve()[0].peak_bytes)
    steps = plan.schedule
    assert len(steps) == plan.figures.schedule.steps
    assert profile.simulate(steps) == plan.figures.schedule
    assert steps[0].op == "forward" and steps.count(remat.Step("loss")) == 1
    assert max(plan.forwards) > 1 and plan.statistics.recomputed_layers > 0
    assert sum(tensor.bytes for tensor in plan.peak_live) <= plan.peak_bytes
    columns = plan.memory(5)
    assert 0 < len(columns) <= 5
    sums = [column.inputs + column.states + column.gradients + column.workspace for column in columns]
    assert max(sums) == plan.peak_bytes
    with pytest.raises(remat.CheckError) as caught:
        profile.simulate([remat.Step("forward", 0, 0), remat.Step("backward", 0)])
    assert caught.value.step == 1
    with pytest.raises(ValueError):
        profile.simulate([remat.Step("sideways")])


def test_a_walk_ends_where_its_visitor_raises():
    plan = small().plan()
    seen = []

    def visit(step):
        seen.append(step)
        if len(seen) == 3:
            raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        plan.walk(visit)
    assert len(seen) == 3
    assert plan.schedule[:3] == seen


def test_a_budget_that_is_too_small_says_what_would_do():
    profile = small()
    with pytest.raises(remat.BudgetError) as caught:
        profile.plan(100)
    error = caught.value
    assert error.budget_bytes == 100 and not error.plan.feasible and error.plan.schedule == []
    assert profile.plan(error.smallest_bytes).peak_bytes <= error.smallest_bytes


def test_strategies():
    names = [strategy.name for strategy in remat.strategies()]
    assert {"none", "full", "optimal", "revolve"} <= set(names)
    plan = small().plan(strategy="every-nth:2")
    assert plan.strategy == "every-nth:2" and plan.method == ""
    with pytest.raises(remat.InvalidError, match="strategy"):
        small().plan(strategy="best")
    with pytest.raises(remat.InvalidError):
        small().plan("4KiB", counts="all")
    assert small().plan("4KiB", strategy="budget", counts="kept").figures.schedule.kept_bytes <= 4096


def test_files(tmp_path):
    profile = remat.Profile.load(EXAMPLE)
    assert profile.name == "transformer-6" and profile.cost_unit == "flop" and len(profile.layers) == 6
    assert remat.Profile.from_text(profile.to_json()).to_json() == profile.to_json()
    profile.save(tmp_path / "profile.json")
    assert remat.Profile.load(tmp_path / "profile.json").to_json() == profile.to_json()
    plan = profile.plan("6KiB")
    plan.save(tmp_path / "plan.json")
    assert profile.load_plan(tmp_path / "plan.json").figures.schedule == plan.figures.schedule
    assert profile.plan_from_json(plan.to_json()).peak_bytes == plan.peak_bytes
    assert profile.check_plan(plan.to_json()) == plan.figures.schedule
    assert '"schedule"' not in plan.to_json(with_schedule=False)
    with pytest.raises(remat.InputFileError) as caught:
        remat.Profile.from_text(
            '{"format": "remat-profile", "version": 1,\n "layers": [{"index": 0, "type": "ffn"}]}', name="short.json"
        )
    assert caught.value.file == "short.json" and caught.value.field == "activation_bytes"


def test_reports(tmp_path):
    profile = remat.Profile.load(EXAMPLE)
    profile.plan("6KiB").report(tmp_path / "page.html")
    report = remat.Report()
    report.add("profile", profile)
    report.add("plan", profile.plan("6KiB"), curve=False)
    assert len(report) == 2 and '"plan"' in report.to_json()
    report.save_json(tmp_path / "report.json")
    assert (tmp_path / "report.json").read_text() == report.to_json()
