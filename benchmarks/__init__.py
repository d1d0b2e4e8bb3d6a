"""Phalanx and jax, the same programs side by side: `python -m benchmarks`."""
