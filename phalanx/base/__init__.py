"""Trees, dtypes, errors, configuration, source locations. Knows nothing about arrays."""
