"""Suites of others: of libraries for JAX (`suites`), of the array API standard (`standard`)."""
