"""Phalanx and jax, the same programs side by side: `python -m benchmarks`."""

from benchmarks import cases, library, numerics, training

__all__ = ["cases", "library", "numerics", "training"]  # which declare what is timed
