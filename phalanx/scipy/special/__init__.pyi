"""The names of ``phalanx.scipy.special``, each with the module that has it."""

from phalanx.nn.normalize import logsumexp as logsumexp
from phalanx.numpy.special import i0 as i0
from phalanx.scipy.special.bessels import (
    bessel_jn as bessel_jn,
    i0e as i0e,
    i1 as i1,
    i1e as i1e,
)
from phalanx.scipy.special.combinatorics import (
    bernoulli as bernoulli,
    comb as comb,
    factorial as factorial,
)
from phalanx.scipy.special.gammas import (
    beta as beta,
    betainc as betainc,
    betaln as betaln,
    digamma as digamma,
    gamma as gamma,
    gammainc as gammainc,
    gammaincc as gammaincc,
    gammaln as gammaln,
    gammasgn as gammasgn,
    loggamma as loggamma,
    multigammaln as multigammaln,
    poch as poch,
    polygamma as polygamma,
    zeta as zeta,
)
from phalanx.scipy.special.hypergeometric import (
    hyp1f1 as hyp1f1,
    hyp2f1 as hyp2f1,
)
from phalanx.scipy.special.integrals import (
    exp1 as exp1,
    expi as expi,
    expn as expn,
    sici as sici,
    spence as spence,
)
from phalanx.scipy.special.legendre import (
    lpmn as lpmn,
    lpmn_values as lpmn_values,
    sph_harm_y as sph_harm_y,
)
from phalanx.scipy.special.logarithms import (
    boxcox as boxcox,
    boxcox1p as boxcox1p,
    entr as entr,
    expit as expit,
    kl_div as kl_div,
    log_softmax as log_softmax,
    logit as logit,
    rel_entr as rel_entr,
    softmax as softmax,
    xlog1py as xlog1py,
    xlogy as xlogy,
)
from phalanx.scipy.special.normal import (
    dawsn as dawsn,
    erf as erf,
    erfc as erfc,
    erfcinv as erfcinv,
    erfcx as erfcx,
    erfinv as erfinv,
    fresnel as fresnel,
    log_ndtr as log_ndtr,
    ndtr as ndtr,
    ndtri as ndtri,
    owens_t as owens_t,
    wofz as wofz,
)
