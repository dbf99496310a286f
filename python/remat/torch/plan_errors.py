"""Errors of remat.torch. Each message says what to do."""
import remat


class TorchPlanError(RuntimeError):
    """A module cannot be planned or a planned module was used in a way that its plan does not cover."""


class CaptureError(TorchPlanError):
    """The computation of a module could not be recorded. `where` is the file and line in the module's code."""

    def __init__(self, message, where=None):
        super().__init__(message)
        self.where = where


class BudgetError(TorchPlanError, remat.BudgetError):
    """No schedule fits the budget. The figures are those of `remat.BudgetError`; `where` names the part that needs most."""

    def __init__(self, message, budget_bytes, smallest_bytes, where=None):
        super().__init__(message)
        self.budget_bytes = budget_bytes
        self.smallest_bytes = smallest_bytes
        self.where = where


class VerifyError(TorchPlanError):
    """A planned step has other numbers than the original module. `where` names the first tensor that differs."""

    def __init__(self, message, where=None):
        super().__init__(message)
        self.where = where
