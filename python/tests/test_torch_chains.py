"""Chains of modules: checkpoint_sequential, and what happens where a computation cannot be recorded."""
import pytest


@pytest.fixture
def nets():
    return pytest.importorskip("torch_nets", reason="PyTorch is not installed")


def test_the_error_says_where(nets):
    import remat.torch

    module, x = nets.branching()
    with pytest.raises(remat.torch.CaptureError, match="depends on the values of a tensor") as caught:
        remat.torch.auto_checkpoint(module, x, "1GB", fallback=False)
    assert "torch_nets.py" in caught.value.where and "if y.sum() > 0" in caught.value.where


def test_a_sequential_is_planned_as_a_chain(nets):
    import remat.torch

    module, x = nets.branching()
    state = nets.state_of(module)
    kept = nets.step(module, module, state, x)
    with pytest.warns(UserWarning, match="chain of 4 sub-modules"):
        planned = remat.torch.auto_checkpoint(module, x, "1GB")
    assert planned.plan.recomputed == 0
    assert nets.same(kept, nets.step(planned, module, state, x))
    with pytest.warns(UserWarning, match="chain"):
        planned = remat.torch.auto_checkpoint(module, x, planned.plan.min_budget_bytes)
    assert planned.plan.recomputed > 0 and planned.plan.changed()
    assert nets.same(kept, nets.step(planned, module, state, x))
    with pytest.raises(remat.torch.BudgetError, match="smallest is"):
        remat.torch.auto_checkpoint(module, x, 10)


def test_blocks_in_a_list_are_recomputed(nets):
    import remat.torch

    module, x = nets.Blocks(), nets.torch.randn(32, 16)
    state = nets.state_of(module)
    kept = nets.step(module, module, state, x)
    with pytest.warns(UserWarning):
        plan = remat.torch.auto_checkpoint(module, x, "1GB").plan
    with pytest.warns(UserWarning):
        planned = remat.torch.auto_checkpoint(module, x, (plan.min_budget_bytes + plan.base_peak_bytes) // 2)
    assert "recompute" in planned.plan.plan.decisions
    assert nets.same(kept, nets.step(planned, module, state, x))


def test_checkpoint_sequential(nets):
    import remat.torch

    module, x = nets.branching(6)
    state = nets.state_of(module)
    kept = nets.step(module, module, state, x)
    plan = remat.torch.ChainPlan(list(module), x, "1GB")
    for budget in (plan.base_peak_bytes, (plan.base_peak_bytes + plan.min_budget_bytes) // 2, plan.min_budget_bytes):
        result = nets.step(lambda value: remat.torch.checkpoint_sequential(module, value, budget), module, state, x)
        assert nets.same(kept, result)
    x.requires_grad_()
    remat.torch.checkpoint_sequential(module, x, "1GB").sum().backward()
    assert x.grad is not None
