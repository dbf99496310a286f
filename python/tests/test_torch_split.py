"""The cross entropy in parts: less memory, and the same numbers up to rounding."""
import pytest


@pytest.mark.parametrize("low_precision", [False, True])
def test_a_cross_entropy_in_parts(low_precision):
    nets = pytest.importorskip("torch_nets", reason="PyTorch is not installed")
    import remat.torch

    torch = nets.torch
    torch.manual_seed(0)
    module, x, targets = nets.Speaker(low_precision), torch.randn(50, 16), torch.randint(0, 301, (50,))
    targets[:7] = -100  # not learned
    state = nets.state_of(module)
    kept = nets.step(module, module, state, x, targets)
    whole = remat.torch.auto_checkpoint(module, (x, targets), "1GB")
    parts = remat.torch.auto_checkpoint(module, (x, targets), "1GB", split=4)
    assert parts.plan.min_budget_bytes < whole.plan.min_budget_bytes / 2
    for budget in (parts.plan.base_peak_bytes, parts.plan.min_budget_bytes):
        parts.set_budget(budget)
        result = nets.step(parts, module, state, x, targets)
        assert all(torch.allclose(a, b, rtol=2e-2 if low_precision else 1e-5, atol=1e-6) for a, b in zip(kept, result))
        module.zero_grad(set_to_none=True)
        with parts.measure() as memory:
            parts(x, targets).backward()
        assert abs(memory.peak_bytes - parts.plan.peak_bytes) <= 64


def test_nothing_to_split():
    nets = pytest.importorskip("torch_nets", reason="PyTorch is not installed")
    import remat.torch

    module, x = nets.residual()
    with pytest.raises(remat.torch.TorchPlanError, match="computes no cross entropy"):
        remat.torch.auto_checkpoint(module, x, "1GB", split=4)
