"""Probability distributions and statistics of samples, with SciPy's names.

A distribution is a module of functions of arrays that broadcast: ``norm.pdf(x, loc, scale)``. There
are no frozen distributions, and no random numbers: draw these with ``phalanx.random``. Densities
are 0 outside of the support; results are NaN where a parameter is not valid. Integers become
floating-point numbers.
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
from phalanx.scipy.stats.summary import mode, rankdata, sem

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
