"""``jax.extend``, for libraries that stand on JAX."""
