"""Derivatives of elementwise functions at complex numbers of all sizes and directions.

They are compared with formulas in many digits. Functions are found by their public names: each is
in the table, or exempt, with the reason why. As of real numbers (``test_slopes_of_all_
sizes``), a derivative may be off by units in the last place, of its size and of what such units of
the operand change.
"""

import numpy as np
import pytest
from mpmath import mp, mpc, mpf

import phalanx
import phalanx.numpy as jnp
from tests.exemptions import exemptions
from tests.laws.test_slopes_of_all_sizes import public


def bell(z):
    """Of the logistic function."""
    return 1 / (2 * mp.cosh(z / 2)) ** 2


def share(z):
    return 1 / (1 + mp.exp(-z))


# By its shortest name, where values of a function lie within the numbers of a dtype.
SLOPES = {
    "acos": lambda z: -1 / (mp.sqrt(1 - z) * mp.sqrt(1 + z)),
    "acosh": lambda z: 1 / (mp.sqrt(z - 1) * mp.sqrt(z + 1)),
    "asin": lambda z: 1 / (mp.sqrt(1 - z) * mp.sqrt(1 + z)),
    "asinh": lambda z: 1 / mp.sqrt(1 + z * z),
    "atan": lambda z: 1 / (1 + z * z),
    "atanh": lambda z: 1 / (1 - z * z),
    "cos": lambda z: -mp.sin(z),
    "cosh": mp.sinh,
    "deg2rad": lambda z: mp.pi / 180,
    "erfcx": lambda z: 2 * z * mp.exp(z * z) * mp.erfc(z) - 2 / mp.sqrt(mp.pi),
    "exp": mp.exp,
    "exp2": lambda z: mp.exp(z * mp.log(2)) * mp.log(2),
    "expm1": mp.exp,
    "gamma": lambda z: mp.gamma(z) * mp.digamma(z),
    "log": lambda z: 1 / z,
    "log10": lambda z: 1 / z / mp.log(10),
    "log1p": lambda z: 1 / (1 + z),
    "log2": lambda z: 1 / z / mp.log(2),
    "log_sigmoid": lambda z: share(-z),
    "loggamma": mp.digamma,
    "logistic": bell,
    "logit": lambda z: 1 / (z * (1 - z)),
    "negative": lambda z: mpf(-1),
    "one_minus_square": lambda z: -2 * z,
    "rad2deg": lambda z: 180 / mp.pi,
    "reciprocal": lambda z: -1 / z**2,
    "rsqrt": lambda z: -1 / (2 * z * mp.sqrt(z)),
    "silu": lambda z: share(z) + z * bell(z),
    "sin": mp.cos,
    "sinh": mp.cosh,
    "softplus": share,
    "sqrt": lambda z: 1 / (2 * mp.sqrt(z)),
    "square": lambda z: 2 * z,
    "tan": lambda z: 1 / mp.cos(z) ** 2,
    "tanh": lambda z: 1 / mp.cosh(z) ** 2,
    "wofz": lambda z: 2j / mp.sqrt(mp.pi) - 2 * z * mp.exp(-z * z) * mp.erfc(-1j * z),
}
ALIASES = {
    "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
    "arctanh": "atanh", "degrees": "rad2deg", "expit": "logistic", "neg": "negative",
    "radians": "deg2rad", "sigmoid": "logistic", "swish": "silu",
}  # fmt: skip
LARGEST = {"erfcx": 20, "gamma": 20, "logit": 2, "loggamma": 1e4, "wofz": 20}  # of those compared


def shapes(f, shape):
    """Of what ``f`` gives of complex numbers of this shape; None if it takes none."""
    try:
        out = phalanx.eval_shape(f, phalanx.ShapeDtypeStruct(shape, np.complex64))
    except Exception:
        return None
    return {(leaf.shape, leaf.dtype) for leaf in phalanx.tree.leaves(out)}


def is_elementwise(f):
    dtype = np.dtype(np.complex64)
    return shapes(f, (2, 3)) == {((2, 3), dtype)} and shapes(f, ()) == {((), dtype)}


def functions(name):
    return [f for (_, n), f in public().items() if ALIASES.get(n, n) == name and is_elementwise(f)]


@pytest.mark.filterwarnings("ignore:Explicitly requested dtype")
def test_every_function_of_a_complex_number_is_compared_or_has_a_reason():
    elementwise = [names for names, f in public().items() if is_elementwise(f)]
    found = {f"{place}.{name}": ALIASES.get(name, name) for place, name in elementwise}
    without = exemptions("complex-slopes").keys()
    assert without <= found.keys()
    assert {found[each] for each in found.keys() - without} == set(SLOPES)


def points(dtype, largest):
    """In all directions, along both axes nearly, and of all sizes that have a square."""
    info, draw = np.finfo(dtype), np.random.default_rng(0)
    high = np.log2(min(largest, float(info.max) ** 0.4))
    sizes = 2 ** np.concatenate([draw.uniform(-high, high, 30), draw.uniform(-6, 6, 30)])
    sizes = sizes[sizes < largest]
    turns = draw.choice([0, 1, 2, 3], sizes.size) * np.pi / 2
    turns += draw.choice([1, 1e-2, 1e-4], sizes.size) * draw.uniform(
        -np.pi / 4, np.pi / 4, sizes.size
    )
    return (sizes * np.exp(1j * turns)).astype(dtype)


def expected(name, z):
    """The derivative in many digits, and what a relative change of the operand makes of it."""
    with mp.workdps(60 + 2 * int(max(0, min(abs(z), 400)))):
        at, move = mpc(complex(z)), mpf(2) ** -30
        slope = SLOPES[name](at)
        return slope, abs(SLOPES[name](at * (1 + move)) - slope) / move


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", SLOPES)
def test_derivatives_have_digits_in_all_directions(name, dtype):
    info = np.finfo(dtype)
    eps, tiny, most = float(info.eps), float(info.tiny), float(info.max)
    with phalanx.enable_x64(dtype == "complex128"), np.errstate(all="ignore"):
        z = points(dtype, LARGEST.get(name, np.inf))
        found = [both_modes(f)(z) for f in functions(name)]
    assert found and z.size > 10
    told = []
    for k, at in enumerate(z):
        slope, moves = expected(name, at)
        if max(abs(slope.real), abs(slope.imag)) > most / 4:
            continue
        room = 64 * eps * (abs(slope) + moves) + 8 * tiny * min(1 + abs(complex(at)) ** 2, 1e4)
        for got in (np.asarray(y)[k] for pair in found for y in pair):
            if not (np.isfinite(got) and abs(mpc(complex(got)) - slope) <= room):
                told.append(f"{name}' at {at}: {got}, not {mp.nstr(slope, 9)}")
    assert not told, "\n".join(told[:20])


def both_modes(f):
    def slopes(z):
        ones = jnp.ones_like(z)
        return phalanx.jvp(f, (z,), (ones,))[1], phalanx.vjp(f, z)[1](ones)[0]

    return phalanx.jit(slopes)
