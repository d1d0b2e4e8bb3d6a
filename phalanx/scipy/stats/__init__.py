"""Distributions of numbers and vectors, with SciPy's names, and some statistics of samples.

A distribution is a module of functions of arrays, which broadcast: ``norm.pdf(x, loc, scale)``.
The formulas in their docs are those of the standard form, for x in units of ``scale`` from
``loc``. Densities are 0 outside of the support, and everything is NaN where a parameter is not
valid. Integers become floats.
"""

import sys as _sys
from inspect import ismodule as _ismodule

from phalanx.base.boundary import bound as _bound
from phalanx.scipy.stats import (
    bernoulli,
    beta,
    betabinom,
    binom,
    cauchy,
    chi2,
    dirichlet,
    expon,
    gamma,
    gennorm,
    geom,
    gumbel_l,
    gumbel_r,
    laplace,
    logistic,
    multinomial,
    multivariate_normal,
    nbinom,
    norm,
    pareto,
    poisson,
    t,
    truncnorm,
    uniform,
    vonmises,
    wrapcauchy,
)
from phalanx.scipy.stats.density import gaussian_kde
from phalanx.scipy.stats.samples import mode, rankdata, sem

__all__ = [
    "bernoulli",
    "beta",
    "betabinom",
    "binom",
    "cauchy",
    "chi2",
    "dirichlet",
    "expon",
    "gamma",
    "gaussian_kde",
    "gennorm",
    "geom",
    "gumbel_l",
    "gumbel_r",
    "laplace",
    "logistic",
    "mode",
    "multinomial",
    "multivariate_normal",
    "nbinom",
    "norm",
    "pareto",
    "poisson",
    "rankdata",
    "sem",
    "t",
    "truncnorm",
    "uniform",
    "vonmises",
    "wrapcauchy",
]

_here = _sys.modules[__name__]
_bound(*filter(_ismodule, map(vars(_here).get, __all__)), _here)
