"""Constants in a compiled program count as numbers that it is given do, NaN and infinities too.

The compiler computes with what it knows. What it makes of an operation that is undefined for a
constant, as is LLVM's conversion of NaN to an integer in XLA's exponential, is anything.
"""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax, nn

NAMES = {
    jnp: "abs arccos arccosh arcsin arcsinh arctan arctanh cbrt ceil cos cosh exp exp2 expm1 floor "
    "i0 log log10 log1p log2 reciprocal round sign sin sinc sinh sqrt square tan tanh trunc",
    lax: "logistic rsqrt",
    nn: "elu gelu log_sigmoid silu softplus",
}
FUNCTIONS = {name: getattr(room, name) for room, names in NAMES.items() for name in names.split()}
COUNT = 3

# How a constant gets beside numbers that are not.
PLACES = {
    "set": lambda x, c: x.at[0].set(c),
    "chosen": lambda x, c: jnp.where(jnp.arange(COUNT) < 1, c, x),
    "updated": lambda x, c: lax.dynamic_update_slice(x, jnp.full(1, c, x.dtype), (0,)),
}


@pytest.mark.parametrize(
    "place, dtype", [("set", np.float32), ("updated", np.float32), ("chosen", np.float16)]
)
def test_elementwise_functions_of_constants(place, dtype):
    x, constants = np.ones(COUNT, dtype), (np.nan, np.inf, -np.inf)

    def values(x, *constants):
        placed = [PLACES[place](x, c) for c in constants]
        return {name: [f(v) for v in placed] for name, f in FUNCTIONS.items()}

    given = phalanx.jit(values)(x, *np.array(constants, dtype))
    known = phalanx.jit(lambda x: values(x, *constants))(x)
    for name in FUNCTIONS:
        np.testing.assert_allclose(known[name], given[name], rtol=1e-2, err_msg=name)
