"""Planned modules compute the same bits within the budget. Needs PyTorch; skipped without it."""
import json

import pytest


@pytest.fixture
def nets():
    return pytest.importorskip("torch_nets", reason="PyTorch is not installed")


def test_fake_rows_lie_as_real_ones(nets):
    from remat.torch.joint_capture import fake_mode

    torch = nets.torch
    x, ones = torch.randn(1, 8, 4, 4), torch.ones(8)
    real = normalized_rows(torch, x, ones)
    mode = fake_mode()
    with mode:
        fake = normalized_rows(torch, mode.from_tensor(x), mode.from_tensor(ones))
    assert fake.stride() == real.stride()


def normalized_rows(torch, x, ones):
    return torch.nn.functional.layer_norm(x.permute(0, 2, 3, 1), [8], ones, ones)


@pytest.mark.parametrize("net", ["transformer", "residual", "branches", "channels_last"])
def test_same_bits_within_the_budget(nets, net):
    import remat.torch

    nets.torch.manual_seed(0)
    module, x = getattr(nets, net)()
    state = nets.state_of(module)
    kept = nets.step(module, module, state, x)
    planned = remat.torch.auto_checkpoint(module, x, "1GB")
    assert nets.same(kept, nets.step(planned, module, state, x))
    costs = []
    low, high = planned.plan.min_budget_bytes, planned.plan.base_peak_bytes
    for budget in (low, (low + high) // 2, high):
        planned.set_budget(budget)
        assert planned.plan.peak_bytes <= budget
        assert nets.same(kept, nets.step(planned, module, state, x))
        module.zero_grad(set_to_none=True)
        with planned.measure() as memory:
            out = planned(x)
            tangent = nets.torch.ones_like(out)
            out.backward(tangent)
        # PyTorch's own steps around the module may hold a scalar or two
        assert abs(memory.peak_bytes - planned.plan.peak_bytes) <= 64
        assert "predicted" in str(memory)
        costs.append(planned.plan.cost_ns)
    assert costs == sorted(costs, reverse=True)
    assert planned.plan.recomputed == 0 and costs[0] > planned.plan.base_cost_ns


def test_a_budget_too_small_names_the_smallest(nets):
    import remat.torch

    module, x = nets.residual()
    with pytest.raises(remat.torch.BudgetError) as caught:
        remat.torch.auto_checkpoint(module, x, "1KiB")
    error = caught.value
    assert error.budget_bytes == 1024
    assert str(error.smallest_bytes) in str(error)
    assert "Conv" in str(error) or "conv" in str(error) or "norm" in str(error)
    assert remat.torch.auto_checkpoint(module, x, error.smallest_bytes).plan.peak_bytes <= error.smallest_bytes


def test_verify_finds_a_module_that_records_something_else(nets):
    import remat.torch

    module, x = nets.residual()
    state = nets.state_of(module)
    remat.torch.auto_checkpoint(module, x, "1GB", verify=True)
    assert nets.same_state(state, nets.state_of(module))
    with pytest.raises(remat.torch.VerifyError, match="output 0 .* values differ, by up to") as caught:
        remat.torch.auto_checkpoint(nets.Traced(), x, "1GB", verify=True)
    assert caught.value.where == "output 0"
    with pytest.raises(remat.torch.VerifyError, match="two steps of the original module differ"):
        remat.torch.auto_checkpoint(nets.Traced(lasting=True), x, "1GB", verify=True)


def test_one_plan_for_each_shape(nets):
    import remat.torch

    module, x = nets.residual()
    planned = remat.torch.auto_checkpoint(module, x, "1GB")
    first = planned.plan
    planned(x)
    assert planned.plan is first and len(planned.plans) == 1
    planned(x[:1])
    assert planned.plan is not first and len(planned.plans) == 2
    planned.eval()
    assert not module.training
    planned(x)
    assert len(planned.plans) == 3
    with nets.torch.no_grad():
        assert nets.torch.equal(planned(x), module(x))
    assert len(planned.plans) == 3


def test_autocast_is_part_of_a_plan(nets):
    import remat.torch

    torch = nets.torch
    module = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 16))
    x, state = torch.randn(4, 16), nets.state_of(module)

    def cast(run):
        def inner(value):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return run(value)
        return inner

    kept = nets.step(cast(module), module, state, x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        planned = remat.torch.auto_checkpoint(module, x, "1GB")
        assert planned(x).dtype == torch.bfloat16
    assert nets.same(kept, nets.step(cast(planned), module, state, x))
    assert len(planned.plans) == 1
    assert planned(x).dtype == torch.float32
    assert len(planned.plans) == 2


def test_frozen_parameters_inputs_with_gradients_and_outputs_in_a_dict(nets):
    import remat.torch

    torch = nets.torch

    class Two(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
            self.b.weight = self.a.weight
            self.a.bias.requires_grad_(False)
            self.scale = torch.full((1,), 2.0)

        def forward(self, x, more=None):
            y = torch.tanh(self.a(x)) * self.scale
            return {"y": self.b(y), "count": 3, "same": x, "mean": (y.detach().mean(), None)}

    module, x = Two(), torch.randn(4, 8, requires_grad=True)
    planned = remat.torch.auto_checkpoint(module, (x,), "1MB", example_kwargs={"more": 1})
    results = []
    for run in (module, planned):
        x.grad = None
        module.zero_grad(set_to_none=True)
        out = run(x, more=1)
        assert out["count"] == 3 and out["mean"][1] is None and torch.equal(out["same"], x)
        assert not out["mean"][0].requires_grad
        out["y"].sum().backward()
        results.append([out["y"].detach(), x.grad, module.a.weight.grad, module.b.bias.grad])
        assert module.a.bias.grad is None
    assert nets.same(*results)
    assert list(planned.state_dict()) == list(module.state_dict())


def test_a_second_backward_is_refused(nets):
    import remat.torch

    module, x = nets.residual()
    loss = remat.torch.auto_checkpoint(module, x, "1GB")(x).sum()
    loss.backward(retain_graph=True)
    with pytest.raises(remat.torch.TorchPlanError, match="call the module again"):
        loss.backward()


def test_nothing_to_plan(nets):
    import remat.torch

    module = nets.torch.nn.Linear(2, 2).requires_grad_(False)
    with pytest.raises(remat.torch.TorchPlanError, match="no parameter that requires a gradient"):
        remat.torch.auto_checkpoint(module, nets.torch.ones(1, 2), "1GB")


def test_fit_answers_before_anything_runs(nets, tmp_path):
    import remat.torch

    module, x = nets.residual()
    state = nets.state_of(module)
    numbers = nets.torch.get_rng_state()
    fit = remat.torch.fit(module, x, loss=lambda y: y.square().sum())
    assert nets.torch.equal(numbers, nets.torch.get_rng_state())
    assert all(nets.torch.equal(value, state[key]) for key, value in module.state_dict().items())
    assert fit.min_budget_bytes < fit.base_peak_bytes
    assert fit.parameter_bytes == sum(p.numel() * 4 for p in module.parameters()) == fit.gradient_bytes
    assert fit.optimizer_bytes == 2 * fit.gradient_bytes
    assert json.loads(json.dumps(fit.to_json()))["curve"][0]["peak_bytes"] == fit.curve[0].peak_bytes
    assert "smallest budget" in str(fit)
    page = tmp_path / "page.html"
    fit.report(page)
    assert "<html" in page.read_text()


def test_costs_can_be_measured(nets):
    import remat.torch

    module, x = nets.residual()
    plan = remat.torch.auto_checkpoint(module, x, "1GB", costs="measure").plan
    assert plan.cost_ns > 0 and all(action.cost > 0 for action in plan.joint.actions)
    with pytest.raises(ValueError, match="costs must be"):
        remat.torch.auto_checkpoint(module, x, "1GB", costs="guess")


def test_a_partition_of_the_joint_graph(nets):
    """What torch.compile would get, through the older version of its front end."""
    torch = nets.torch
    compiler = pytest.importorskip("functorch._src.partitioners", reason="only PyTorch 1.13 has this front end")
    from functorch.compile import aot_module, config, nop

    from remat.torch import compile_partition

    module, x = nets.transformer()
    module.eval()
    plans = []

    def partition(joint, inputs):
        saved, plan = compile_partition.choose_saved(joint, 1, budget)
        plans.append((plan, len(saved)))
        primals = [n for n in joint.graph.nodes if n.op == "placeholder" and "tangents" not in str(n.target)]
        return compiler._extract_fwd_bwd_modules(joint, primals + saved)

    config.use_fake_tensor = True
    kept = nets.step(module, module, nets.state_of(module), x)
    for share in (None, 0.6):
        budget = None if share is None else int(plans[0][0].base_peak_bytes * share)
        compiled = aot_module(module, fw_compiler=nop, bw_compiler=nop, partition_fn=partition)
        result = nets.step(compiled, module, nets.state_of(module), x)
        assert all(torch.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in zip(kept, result))
    assert plans[1][0].peak_bytes <= budget and plans[1][1] < plans[0][1]


def test_the_smallest_budget_keeps_the_order_of_random_operations(nets, monkeypatch):
    """As if every schedule that recomputes drew in another order: then what random operations make is kept, and that is larger."""
    import remat.torch
    from remat.torch.step_plan import StepPlan

    def in_order(plan, schedule):
        return len(schedule) == len(set(schedule)) or all(a.once for a in plan.joint.actions if a.is_random)

    module, x = nets.transformer()
    free = remat.torch.auto_checkpoint(module, x, "1GB").plan.min_budget_bytes
    monkeypatch.setattr(StepPlan, "_draws_in_order", in_order)
    planned = remat.torch.auto_checkpoint(module, x, "1GB")
    smallest = planned.plan.min_budget_bytes
    assert smallest > free
    planned.set_budget(smallest)
    assert planned.plan.peak_bytes <= smallest
    planned = remat.torch.auto_checkpoint(module, x, "1GB")
    with pytest.raises(remat.torch.BudgetError) as caught:
        planned.set_budget(free // 2)
    assert caught.value.smallest_bytes == smallest


def test_a_smallest_budget_that_was_stated_holds(nets, monkeypatch):
    """As if only the schedule of the smallest peak drew in order: it is what the smallest budget gets, also behind another budget."""
    import torch

    import remat.torch
    from remat.torch.step_plan import StepPlan

    module, x = nets.transformer()
    planned = remat.torch.auto_checkpoint(module, x, "1GB")
    smallest, most = planned.plan.min_budget_bytes, planned.plan.base_peak_bytes
    order = planned.plan.graph.plan(smallest).schedule.tolist()

    def in_order(plan, schedule):
        return all(a.once for a in plan.joint.actions if a.is_random) or schedule == order

    monkeypatch.setattr(StepPlan, "_draws_in_order", in_order)
    kept = nets.step(module, module, nets.state_of(module), x)
    for budget in (smallest, (smallest + 3 * most) // 4, smallest):
        planned.set_budget(budget)
        assert planned.plan.peak_bytes <= budget and planned.plan.min_budget_bytes == smallest
        assert (planned.plan.plan.schedule.tolist() == order) == (budget == smallest)
        assert all(torch.equal(a, b) for a, b in zip(kept, nets.step(planned, module, nets.state_of(module), x)))
