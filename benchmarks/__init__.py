"""Phalanx and jax, the same programs side by side: `python -m benchmarks`."""

from benchmarks import cases, numerics

__all__ = ["cases", "numerics"]  # which declare what is timed
