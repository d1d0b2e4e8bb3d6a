"""The names of ``phalanx.random``, each with the module that has it."""

from phalanx.random.continuous import (
    beta as beta,
    cauchy as cauchy,
    chisquare as chisquare,
    double_sided_maxwell as double_sided_maxwell,
    exponential as exponential,
    f as f,
    generalized_normal as generalized_normal,
    gumbel as gumbel,
    laplace as laplace,
    logistic as logistic,
    maxwell as maxwell,
    pareto as pareto,
    rayleigh as rayleigh,
    t as t,
    triangular as triangular,
    wald as wald,
    weibull_min as weibull_min,
)
from phalanx.random.declared import define_prng_impl as define_prng_impl
from phalanx.random.discrete import (
    bernoulli as bernoulli,
    binomial as binomial,
    categorical as categorical,
    geometric as geometric,
    poisson as poisson,
    rademacher as rademacher,
)
from phalanx.random.gammas import (
    gamma as gamma,
    loggamma as loggamma,
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
from phalanx.random.multivariate import (
    ball as ball,
    dirichlet as dirichlet,
    multinomial as multinomial,
    multivariate_normal as multivariate_normal,
    orthogonal as orthogonal,
)
from phalanx.random.normals import (
    lognormal as lognormal,
    normal as normal,
    truncated_normal as truncated_normal,
)
from phalanx.random.permutations import (
    choice as choice,
    permutation as permutation,
)
from phalanx.random.uniforms import (
    bits as bits,
    randint as randint,
    uniform as uniform,
)
