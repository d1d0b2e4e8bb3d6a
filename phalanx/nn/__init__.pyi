"""The names of ``phalanx.nn``, each with the module that has it."""

from phalanx.nn import initializers as initializers
from phalanx.nn.activations import (
    celu as celu,
    elu as elu,
    gelu as gelu,
    glu as glu,
    hard_sigmoid as hard_sigmoid,
    hard_silu as hard_silu,
    hard_swish as hard_swish,
    hard_tanh as hard_tanh,
    identity as identity,
    leaky_relu as leaky_relu,
    log_sigmoid as log_sigmoid,
    mish as mish,
    relu as relu,
    relu6 as relu6,
    selu as selu,
    sigmoid as sigmoid,
    silu as silu,
    soft_sign as soft_sign,
    softplus as softplus,
    sparse_plus as sparse_plus,
    sparse_sigmoid as sparse_sigmoid,
    squareplus as squareplus,
    swish as swish,
)
from phalanx.nn.attention import (
    dot_product_attention as dot_product_attention,
    scaled_matmul as scaled_matmul,
)
from phalanx.nn.normalize import (
    log1mexp as log1mexp,
    log_softmax as log_softmax,
    logmeanexp as logmeanexp,
    logsumexp as logsumexp,
    one_hot as one_hot,
    softmax as softmax,
    standardize as standardize,
)
from phalanx.numpy.trigonometric import tanh as tanh
