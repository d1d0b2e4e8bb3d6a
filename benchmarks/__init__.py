"""Phalanx and jax, the same programs side by side: `python -m benchmarks`."""

from benchmarks import cases, library, numerics

__all__ = ["cases", "library", "numerics"]  # which declare what is timed
