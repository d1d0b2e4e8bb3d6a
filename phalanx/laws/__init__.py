"""Laws that functions and primitives obey, to check your own with.

``check_grads`` compares derivatives with finite differences and forward with reverse mode,
``check_batch`` a vectorized function with a loop, ``check_pmap`` pmap with vmap, ``check_jit`` a
compiled function with the function, and ``check_primitive`` every rule of a primitive with what
the primitive computes. Each returns nothing, or raises an ``AssertionError`` that says who, what
was found, and what was expected.
"""

from phalanx.base.lazily import later as _later

_later(__name__)
