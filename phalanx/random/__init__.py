"""Random numbers as pure functions of keys: the same key, the same numbers, everywhere.

Make a key of a seed, split it, and use each key once.

>>> from phalanx import random
>>> key = random.key(0)
>>> key, drawn = random.split(key)
>>> random.normal(drawn, (2,)).shape
(2,)
"""

import sys as _sys

from phalanx.base.boundary import bound as _bound
from phalanx.random.choices import categorical, choice, permutation
from phalanx.random.composed import (
    ball,
    beta,
    chisquare,
    dirichlet,
    double_sided_maxwell,
    f,
    generalized_normal,
    geometric,
    maxwell,
    pareto,
    rayleigh,
    t,
    triangular,
    wald,
    weibull_min,
)
from phalanx.random.declared import define_prng_impl
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
    Key,
    PRNGKey,
    clone,
    fold_in,
    key,
    key_data,
    key_dtype,
    key_impl,
    split,
    wrap_key_data,
)
from phalanx.random.matrices import multivariate_normal, orthogonal
from phalanx.random.rejection import binomial, gamma, loggamma, multinomial, poisson
from phalanx.random.uniform import bernoulli, bits, rademacher, randint, uniform

__all__ = [
    "Key",
    "PRNGKey",
    "ball",
    "bernoulli",
    "beta",
    "binomial",
    "bits",
    "categorical",
    "cauchy",
    "chisquare",
    "choice",
    "clone",
    "define_prng_impl",
    "dirichlet",
    "double_sided_maxwell",
    "exponential",
    "f",
    "fold_in",
    "gamma",
    "generalized_normal",
    "geometric",
    "gumbel",
    "key",
    "key_data",
    "key_dtype",
    "key_impl",
    "laplace",
    "loggamma",
    "logistic",
    "lognormal",
    "maxwell",
    "multinomial",
    "multivariate_normal",
    "normal",
    "orthogonal",
    "pareto",
    "permutation",
    "poisson",
    "rademacher",
    "randint",
    "rayleigh",
    "split",
    "t",
    "triangular",
    "truncated_normal",
    "uniform",
    "wald",
    "weibull_min",
    "wrap_key_data",
]

_bound(_sys.modules[__name__])
