"""What programs take from ``jax._src``, JAX's private modules."""
