"""``jax.experimental.pallas``: kernels, which are run as loops over their grids.

Nothing here is faster than the same written with arrays; programs and libraries that bring kernels
run, with the results that the kernels have in the interpreted mode of others.
"""
