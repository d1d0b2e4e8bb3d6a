"""``jax.interpreters``: rules and programs under JAX's names, for primitives of other libraries."""
