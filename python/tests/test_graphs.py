"""Graphs, their plans and their curves."""

import gc

import numpy
import pytest

import remat

LENGTH = 8


def chain(**keywords):
    """A chain of LENGTH tensors and their gradients, each of 1000 bytes."""
    graph = remat.Graph("chain", cost_unit="ns", **keywords)
    values = [graph.add_tensor(1000, f"x{i}") for i in range(LENGTH)]
    gradients = [graph.add_tensor(1000, f"y{i}") for i in range(LENGTH)]
    graph.add_action(1, writes=[values[0]], name="load", once=True)
    for i in range(1, LENGTH):
        graph.add_action(10, reads=[values[i - 1]], writes=[values[i]], name=f"forward {i}")
    graph.add_action(5, reads=[values[-1]], writes=[gradients[-1]], name="loss", once=True)
    for i in range(LENGTH - 1, 0, -1):
        graph.add_action(10, reads=[values[i - 1], gradients[i]], writes=[gradients[i - 1]], name=f"backward {i}")
    graph.add_result(gradients[0])
    return graph


def test_what_was_added_can_be_read_back():
    graph = remat.Graph("small", cost_unit="flops")
    weights = graph.add_tensor("1KiB", "weights", given=True)
    x = graph.add_tensor(numpy.int64(100))
    y = graph.add_tensor(200, name="ÿ")
    assert (weights, x, y) == (0, 1, 2)
    assert graph.add_action(1, writes=[x]) == 0
    action = graph.add_action(
        7, reads=[weights, x], writes=numpy.array([y]), workspace_bytes="2KB", in_place=(x, y), name="work"
    )
    assert action == 1
    assert graph.add_action(3, updates=[y], once=True) == 2
    graph.add_result(y)
    assert graph.name == "small" and graph.cost_unit == "flops"
    assert list(graph.tensors) == [
        remat.GraphTensor("weights", 1024, True),
        remat.GraphTensor("", 100, False),
        remat.GraphTensor("ÿ", 200, False),
    ]
    assert graph.actions[1] == remat.GraphAction("work", 7, (0, 1), (2,), (), 2000, False, (1, 2))
    assert graph.actions[-1] == remat.GraphAction("", 3, (), (), (2,), 0, True, None)
    assert graph.results == (y,)
    with pytest.raises(IndexError):
        graph.tensors[3]


def test_plans_stay_within_their_budgets():
    graph = chain()
    kept = graph.plan()
    assert kept.strategy == "none" and kept.budget_bytes is None
    assert kept.peak_bytes == kept.base_peak_bytes == 9000
    assert kept.schedule.tolist() == list(range(len(graph.actions)))
    cost = None
    for budget in (4000, 5000, 9000):
        plan = graph.plan(budget)
        assert plan.feasible and plan.peak_bytes <= plan.budget_bytes == budget
        assert plan.lower_bound_cost <= plan.total_cost and (cost is None or plan.total_cost <= cost)
        cost = plan.total_cost
        assert plan.live_bytes.max() == plan.peak_bytes == plan.live_bytes[plan.peak_position]
        replayed = graph.replay(plan.schedule)
        assert (replayed.peak_bytes, replayed.total_cost) == (plan.peak_bytes, plan.total_cost)
    assert cost == kept.total_cost == plan.base_cost


def test_a_budget_that_is_too_small_says_what_would_do():
    graph = chain()
    with pytest.raises(remat.BudgetError) as caught:
        graph.plan("2KB")
    error = caught.value
    assert error.status == remat.Status.INFEASIBLE == 4
    assert error.budget_bytes == 2000 and error.lower_bound_bytes <= error.smallest_bytes
    assert not error.plan.feasible and error.plan.schedule.size == 0
    assert str(error.smallest_bytes) in str(error)
    assert graph.plan(error.smallest_bytes).peak_bytes <= error.smallest_bytes


def test_the_walk_of_a_plan_frees_what_the_plan_says():
    graph = chain()
    plan = graph.plan(5000)
    live, peak, runs = set(), 0, {}
    for step in plan.walk():
        action = graph.actions[step.action]
        assert set(action.reads) <= live
        live |= set(action.writes)
        peak = max(peak, sum(graph.tensors[tensor].bytes for tensor in live))
        assert step.run == runs.get(step.action, 0)
        runs[step.action] = step.run + 1
        assert set(step.dies) <= live
        live -= set(step.dies)
    assert live == set(graph.results)
    assert peak == plan.peak_bytes
    assert all(plan.runs(action) == count for action, count in runs.items())
    assert max(runs.values()) > 1


def test_places_that_are_live_together_do_not_overlap():
    plan = chain().plan(5000)
    places = list(plan.places)
    assert len(places) == len(plan.schedule)
    assert max(place.offset + place.bytes for place in places) == plan.arena_bytes
    for i, one in enumerate(places):
        for other in places[:i]:
            if one.born < other.ends and other.born < one.ends:
                assert one.offset + one.bytes <= other.offset or other.offset + other.bytes <= one.offset


def test_the_curve_falls():
    graph = chain()
    curve = graph.curve()
    assert len(curve) == 6 and curve[0].peak_bytes == 4000
    assert (curve[-1].peak_bytes, curve[-1].total_cost) == (curve.base_peak_bytes, curve.base_cost)
    assert all(a.peak_bytes < b.peak_bytes and a.total_cost > b.total_cost for a, b in zip(curve, curve[1:]))
    assert 0 <= curve.knee < len(curve)
    assert curve.graph is graph


def test_arrays_keep_the_plan():
    graph = chain()
    plan = graph.plan(5000)
    schedule, wanted = plan.schedule, plan.schedule.copy()
    assert not schedule.flags.writeable and not schedule.flags.owndata
    assert schedule.ctypes.data == plan.schedule.ctypes.data
    with pytest.raises(ValueError):
        schedule[0] = 1
    view = schedule[3:]
    del graph, plan, schedule
    gc.collect()
    assert (view == wanted[3:]).all()


def test_objects_die_in_any_order():
    for _ in range(3):
        graph = chain()
        plan = graph.plan(5000)
        graph.plan_that_i_like, plan.array = plan, plan.schedule  # a cycle: the collector chooses the order
        del graph, plan
    gc.collect()


def test_a_planned_graph_cannot_change():
    graph = chain()
    graph.plan(5000)
    with pytest.raises(remat.InvalidError, match="cannot be changed"):
        graph.add_tensor(3)


def test_files(tmp_path):
    graph = chain()
    graph.save(tmp_path / "graph.json")
    same = remat.Graph.load(str(tmp_path / "graph.json"))
    assert same.to_json() == graph.to_json() == (tmp_path / "graph.json").read_text()
    assert remat.Graph.from_json(graph.to_json()).to_json() == graph.to_json()
    plan = graph.plan(5000)
    plan.save(tmp_path / "plan.json")
    read = same.load_plan(tmp_path / "plan.json")
    assert (read.schedule == plan.schedule).all() and list(read.places) == list(plan.places)
    assert read.figures == plan.figures
    assert same.plan_from_json(plan.to_json()).figures == plan.figures
    assert "schedule" not in plan.to_json(with_schedule=False)
    assert graph.check_plan(plan.to_json()).peak_bytes == plan.peak_bytes
    with pytest.raises(remat.CheckError) as caught:
        graph.check_plan(plan.to_json().replace('"peak_bytes": 5000', '"peak_bytes": 4999'), name="forged.json")
    assert "forged.json" in str(caught.value)


def test_reports_show_plans(tmp_path):
    plan = chain().plan(5000)
    plan.report(tmp_path / "page.html")
    assert "<html" in (tmp_path / "page.html").read_text() and "remat-report" in (tmp_path / "page.html").read_text()
    report = remat.Report()
    report.add("first", plan)
    report.add("second", plan, curve=False, arena=False)
    assert len(report) == 2
    assert report.to_json().startswith('{"format":"remat-report"')
    assert '"second"' in report.to_json()
    with pytest.raises(TypeError, match="shows no str"):
        report.add("third", "text")


def test_plans_are_not_copied():
    """A copy would own the same C object."""
    import copy
    import pickle

    plan = chain().plan()
    for wrong in (copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="can be neither copied nor pickled"):
            wrong(plan)
    assert plan.peak_bytes > 0
