"""The test suites of libraries written for JAX, under both: `python -m libraries.suites`."""
