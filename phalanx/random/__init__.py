"""Random numbers as pure functions of keys: the same key, the same numbers, everywhere.

Make a key of a seed, split it, and use each key once.

>>> from phalanx import random
>>> key = random.key(0)
>>> key, drawn = random.split(key)
>>> random.normal(drawn, (2,)).shape
(2,)
"""

from phalanx.base.lazily import later as _later

_later(__name__)
