"""What ``jax.experimental.sparse`` warns with, for programs that turn the warnings off."""

__all__ = ["CuSparseEfficiencyWarning", "SparseEfficiencyError", "SparseEfficiencyWarning"]


class SparseEfficiencyError(ValueError):
    """A form of a sparse array is refused; here none is."""


class SparseEfficiencyWarning(UserWarning):
    """A form of a sparse array is slow; here nothing warns of it."""


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """A library of GPUs is not used; here none is."""
