"""Errors of remat.torch. Each message says what to do."""


class TorchPlanError(RuntimeError):
    """A module cannot be planned or a planned module was used in a way that its plan does not cover."""


class CaptureError(TorchPlanError):
    """The computation of a module could not be recorded. `where` is the file and line in the module's code."""

    def __init__(self, message, where=None):
        super().__init__(message)
        self.where = where


class BudgetError(TorchPlanError):
    """No schedule fits the budget. The figures say which budget would be enough."""

    def __init__(self, message, budget_bytes, min_budget_bytes, where=None):
        super().__init__(message)
        self.budget_bytes = budget_bytes
        self.min_budget_bytes = min_budget_bytes
        self.where = where
