"""First and second derivatives of elementwise functions, where numbers are large or small.

They have digits wherever their value is a number of the dtype: not only where functions are near 1.
Expected are first derivatives in closed form, and the slopes of those by complex steps (Squire and
Trapp, SIAM Review 40, 1998), in the widest floats that NumPy has. A number and its neighbours are
the same to nobody who rounds, so that much is tolerated, too.
"""

import ml_dtypes
import numpy as np
import pytest
import scipy.special

import phalanx
import phalanx.numpy as jnp
from phalanx import lax, nn
from phalanx.scipy import special

WIDE, STEP, STEPS_OFF = np.longdouble, 1e-25, 30
TYPES = {t.__name__: t for t in (np.float32, np.float16, ml_dtypes.bfloat16, np.float64)}


def decay(z):
    """e^-|z|, continued analytically from either side."""
    return np.exp(np.where(z.real < 0, z, -z))


def bell(z):
    return np.where(abs(z) < 1, 0.25 / np.cosh(z / 2) ** 2, decay(z) / (1 + decay(z)) ** 2)


def sigmoid(z):
    return np.where(z.real < 0, decay(z), 1) / (1 + decay(z))


def mish(z):
    e = np.exp(z)
    n = e * e + 2 * e  # tanh(softplus(z)) is n / (n + 2)
    part = np.where(z.real > 0, 1 - 2 / (n + 2), n / (n + 2))
    return part + 4 * z * ((1 + e) / (n + 2)) ** 2 * sigmoid(z)


def one_less_square(z):
    return np.where(abs(z) < 0.5, 1 - z * z, (1 - z) * (1 + z))


def of_i1(z):
    orders = [scipy.special.iv(n, z) for n in (0, 2)]
    return np.where(abs(z) < 1e-4, 0.5 + 3 / 16 * z * z, sum(orders) / 2)


def below_zero(slope):
    return lambda z: np.where(z.real > 0, 1 + 0 * z, slope(z))


def between(low, high):
    return lambda x: (x > low) & (x < high)


ANY, POSITIVE, UNIT = between(-np.inf, np.inf), between(0, np.inf), between(-1, 1)
WAVES, FEW = between(-1e4, 1e4), between(-300, 300)
BELL = 2 / np.sqrt(WIDE(np.pi))

# By name: the function, its derivative, and where they are compared.
ELEMENTARY = {
    "exp": (jnp.exp, np.exp, FEW),
    "exp2": (jnp.exp2, lambda z: np.exp(z * np.log(WIDE(2))) * np.log(WIDE(2)), FEW),
    "expm1": (jnp.expm1, np.exp, FEW),
    "log": (jnp.log, lambda z: 1 / z, POSITIVE),
    "log1p": (jnp.log1p, lambda z: 1 / (1 + z), between(-1, np.inf)),
    "sin": (jnp.sin, np.cos, WAVES),
    "cos": (jnp.cos, lambda z: -np.sin(z), WAVES),
    "tan": (jnp.tan, lambda z: np.cos(z) ** -2, WAVES),
    "arcsin": (jnp.arcsin, lambda z: one_less_square(z) ** -0.5, UNIT),
    "arccos": (jnp.arccos, lambda z: -(one_less_square(z) ** -0.5), UNIT),
    "arctan": (jnp.arctan, lambda z: 1 / (1 + z * z), ANY),
    "sinh": (jnp.sinh, np.cosh, FEW),
    "cosh": (jnp.cosh, np.sinh, FEW),
    "tanh": (jnp.tanh, lambda z: 4 * bell(2 * z), ANY),
    "arcsinh": (jnp.arcsinh, lambda z: (1 + z * z) ** -0.5, ANY),
    "arccosh": (jnp.arccosh, lambda z: (z - 1) ** -0.5 * (z + 1) ** -0.5, between(1, np.inf)),
    "arctanh": (jnp.arctanh, lambda z: 1 / one_less_square(z), UNIT),
    "sqrt": (jnp.sqrt, lambda z: 0.5 * z**-0.5, POSITIVE),
    "reciprocal": (jnp.reciprocal, lambda z: -1 / (z * z), ANY),
    "square": (jnp.square, lambda z: 2 * z, ANY),
    "logistic": (lax.logistic, bell, ANY),
    "softplus": (nn.softplus, sigmoid, ANY),
    "log_sigmoid": (nn.log_sigmoid, lambda z: sigmoid(-z), ANY),
    "silu": (nn.silu, lambda z: sigmoid(z) + z * bell(z), ANY),
    "elu": (nn.elu, below_zero(np.exp), FEW),
    "celu": (lambda x: nn.celu(x, 2.0), below_zero(lambda z: np.exp(z / 2)), FEW),
    "mish": (nn.mish, mish, FEW),
    "logaddexp": (lambda x: jnp.logaddexp(x, x.dtype.type(1)), lambda z: sigmoid(z - 1), ANY),
    "erf": (lax.erf, lambda z: BELL * np.exp(-z * z), FEW),
    "erfc": (lax.erfc, lambda z: -BELL * np.exp(-z * z), FEW),
    **{
        f"arctan2 of {size}": (
            lambda x, size=size: jnp.arctan2(x, constant(x, size)),
            lambda z, size=size: (c := constant(z, size)) / (c * c + z * z),
            ANY,
        )
        for size in ("1", "large", "small")
    },
    **{
        f"arctan2 by {size}": (
            lambda x, size=size: jnp.arctan2(constant(x, size), x),
            lambda z, size=size: -(c := constant(z, size)) / (c * c + z * z),
            ANY,
        )
        for size in ("1", "large", "small")
    },
}  # fmt: skip

# Those whose derivatives SciPy has for complex numbers, in float64.
OF_BESSEL = {
    "i0": (jnp.i0, lambda z: scipy.special.iv(1, z), between(-80, 80)),
    "i1": (
        special.i1,
        of_i1,
        between(-80, 80),
    ),
}  # fmt: skip


def constant(x, size):
    """1, or a large or a small number, of the dtype that is tested."""
    return x.dtype.type({"1": 1, "large": LARGE[0], "small": 1 / LARGE[0]}[size])


LARGE = [2.0]


def grid(dtype, inside):
    info = ml_dtypes.finfo(dtype)
    low, high = np.log2(float(info.tiny)) + 1, min(float(np.log2(info.max)), 2000) - 0.5
    sizes = np.concatenate([2 ** np.linspace(low, high, 60), np.linspace(0.3, 20, 30), [40, 80]])
    x = np.concatenate([-sizes, sizes]).astype(dtype)
    return x[inside(x.astype(np.float64))]


def differentiated(f):
    """Once and twice, in either mode."""

    def forward(f):
        return lambda x: phalanx.jvp(f, (x,), (jnp.ones_like(x),))[1]

    once = phalanx.grad(f), forward(f)
    return once, (phalanx.grad(once[0]), forward(once[1]))


def expected(slope, x, wide):
    """f', f'', and how much of them lies between ``x`` and the numbers next to it."""
    x = x.astype(wide)
    unit = np.zeros((), np.result_type(wide, np.complex64)).dtype.type(1j)

    def second(x):
        return slope(x + unit * (x * STEP)).imag / (x * STEP)

    first, curve, off = slope(x + 0 * unit).real, second(x), wide(1e-5)
    return (first, abs(x * curve)), (curve, abs(second(x * (1 + off)) - curve) / off)


def check(name, found, wanted, moves, x, dtype):
    info = ml_dtypes.finfo(dtype)
    eps, tiny, largest = (float(v) for v in (info.eps, info.tiny, info.max))
    held = np.isfinite(wanted) & (abs(wanted) < largest / 2)
    least = 8 * tiny * np.minimum(1 + x.astype(np.float64) ** 2, 1e4)  # below it all is 0
    allowed = STEPS_OFF * eps * (abs(wanted) + moves) + least
    wrong = held & ~(abs(found.astype(wanted.dtype) - wanted) <= allowed)
    told = [f"{v}: {a}, not {b}" for v, a, b in zip(x[wrong], found[wrong], wanted[wrong])]  # noqa: B905
    return [f"{name} at {line}" for line in told[:3]]


@pytest.mark.parametrize("kind", TYPES)
def test_derivatives_have_digits_everywhere(kind):
    dtype = TYPES[kind]
    LARGE[0] = float(2.0 ** int(0.8 * np.log2(float(ml_dtypes.finfo(dtype).max))))
    tables = [(ELEMENTARY, WIDE)] + [(OF_BESSEL, np.float64)] * (dtype == np.float32)
    with phalanx.enable_x64(dtype == np.float64), np.errstate(all="ignore"):
        rows = {name: (*row, wide) for table, wide in tables for name, row in table.items()}
        points = {name: grid(dtype, inside) for name, (_, _, inside, _) in rows.items()}

        def every(points):
            return {
                name: [[phalanx.vmap(g)(x) for g in gs] for gs in differentiated(rows[name][0])]
                for name, x in points.items()
            }

        wrong: list[str] = []
        for name, orders in phalanx.jit(every)(points).items():
            _, slope, _, wide = rows[name]
            x = points[name]
            for (wanted, moves), found in zip(expected(slope, x, wide), orders, strict=True):
                for y in found:
                    wrong += check(name, np.asarray(y), wanted, moves, x, dtype)
    assert not wrong
