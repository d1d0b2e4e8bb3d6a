"""Random numbers as pure functions of keys: the same key, the same numbers, everywhere.

Make a key of a seed, split it, and use each key once.

>>> from phalanx import random
>>> key = random.key(0)
>>> key, drawn = random.split(key)
>>> random.normal(drawn, (2,)).shape
(2,)
"""

from phalanx.random.choices import categorical, choice, permutation
from phalanx.random.distributions import (
    cauchy,
    exponential,
    gumbel,
    laplace,
    logistic,
    lognormal,
    normal,
    truncated_normal,
)
from phalanx.random.keys import (
    PRNGKey,
    clone,
    fold_in,
    key,
    key_data,
    key_impl,
    split,
    wrap_key_data,
)
from phalanx.random.uniform import bernoulli, bits, rademacher, randint, uniform

__all__ = [
    "PRNGKey",
    "bernoulli",
    "bits",
    "categorical",
    "cauchy",
    "choice",
    "clone",
    "exponential",
    "fold_in",
    "gumbel",
    "key",
    "key_data",
    "key_impl",
    "laplace",
    "logistic",
    "lognormal",
    "normal",
    "permutation",
    "rademacher",
    "randint",
    "split",
    "truncated_normal",
    "uniform",
    "wrap_key_data",
]
