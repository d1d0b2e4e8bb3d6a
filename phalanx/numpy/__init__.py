"""NumPy for programs that are transformed, compiled and mapped over devices.

Functions have the names and meaning of NumPy's, with these differences: arrays are immutable
(``x.at[i].set(v)`` returns a new one); 64-bit dtypes become 32-bit ones unless ``enable_x64``
is set; Python numbers do not widen the dtype of arrays beside them; an index outside an array
raises no error; lists must be converted with ``array``.

>>> import phalanx.numpy as jnp
>>> print(jnp.arange(3) + 1.5)
[1.5 2.5 3.5]
"""

# some things are imported for what that does:
# ruff: noqa: F401
# pyright: reportUnusedImport=false

import numpy as _numpy  # whole, before who asks for a part of it

# isort: split
import ml_dtypes as _ml_dtypes  # NumPy knows bfloat16 by its name from then on

from phalanx.base.lazily import later as _later

_later(__name__, refused={"random": "use phalanx.random, whose functions take a key"})
