"""The names of ``phalanx.random``, each with the module that has it."""

from phalanx.random.choices import (
    categorical as categorical,
    choice as choice,
    permutation as permutation,
)
from phalanx.random.composed import (
    ball as ball,
    beta as beta,
    chisquare as chisquare,
    dirichlet as dirichlet,
    double_sided_maxwell as double_sided_maxwell,
    f as f,
    generalized_normal as generalized_normal,
    geometric as geometric,
    maxwell as maxwell,
    pareto as pareto,
    rayleigh as rayleigh,
    t as t,
    triangular as triangular,
    wald as wald,
    weibull_min as weibull_min,
)
from phalanx.random.declared import define_prng_impl as define_prng_impl
from phalanx.random.distributions import (
    cauchy as cauchy,
    exponential as exponential,
    gumbel as gumbel,
    laplace as laplace,
    logistic as logistic,
    lognormal as lognormal,
    normal as normal,
    truncated_normal as truncated_normal,
)
from phalanx.random.keys import (
    Key as Key,
    PRNGKey as PRNGKey,
    clone as clone,
    fold_in as fold_in,
    key as key,
    key_data as key_data,
    key_dtype as key_dtype,
    key_impl as key_impl,
    split as split,
    wrap_key_data as wrap_key_data,
)
from phalanx.random.matrices import (
    multivariate_normal as multivariate_normal,
    orthogonal as orthogonal,
)
from phalanx.random.rejection import (
    binomial as binomial,
    gamma as gamma,
    loggamma as loggamma,
    multinomial as multinomial,
    poisson as poisson,
)
from phalanx.random.uniforms import (
    bernoulli as bernoulli,
    bits as bits,
    rademacher as rademacher,
    randint as randint,
    uniform as uniform,
)
