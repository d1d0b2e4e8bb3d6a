"""First and second derivatives of every elementwise function, where numbers are large or small.

They have digits wherever their value is a number of the dtype: not only where functions are near 1.
Functions are found by their public names: each is in ``many_digits``, or exempt, with the reason
why it has no derivatives to compare. A number and its neighbours are the same to nobody who
rounds, so a derivative may be off by some units in the last place, and by as much as so many units
of the operands change it; second ones by more, which are made of several products.
"""

import functools
import hashlib

import ml_dtypes
import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax, nn
from phalanx.scipy import special
from tests.exemptions import exemptions
from tests.laws.many_digits import OF_ONE, OF_TWO, derivatives, mp, mpf

MODULES = {"lax": lax, "numpy": jnp, "nn": nn, "scipy.special": special}
TYPES = {
    "float32": [np.float32],
    "float64": [np.float64],
    "of 16 bits": [np.float16, ml_dtypes.bfloat16],
}

# Other names of what stands in the tables.
ALIASES = {
    "absolute": "abs", "fabs": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin",
    "arcsinh": "asinh", "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh",
    "i0e": "bessel_i0e", "i1e": "bessel_i1e", "radians": "deg2rad", "divide": "div",
    "true_divide": "div", "erf_inv": "erfinv", "expit": "logistic", "sigmoid": "logistic",
    "float_power": "pow", "power": "pow", "fmax": "maximum", "max": "maximum", "fmin": "minimum",
    "min": "minimum", "fmod": "rem", "gammaln": "lgamma", "hard_swish": "hard_silu",
    "igamma": "gammainc", "igammac": "gammaincc", "mod": "remainder", "multiply": "mul",
    "neg": "negative", "degrees": "rad2deg", "subtract": "sub", "swish": "silu",
    "positive": "identity",
}  # fmt: skip

# What is called otherwise than by its numbers alone, or gives several results.
CALLED = {
    "bessel_jn": lambda x: special.bessel_jn(x, v=2)[2],
    "fresnel_c": lambda x: special.fresnel(x)[1],
    "fresnel_s": lambda x: special.fresnel(x)[0],
    "gelu_exact": lambda x: nn.gelu(x, approximate=False),
    "modf": lambda x: jnp.modf(x)[0],
    "multigammaln": lambda x: special.multigammaln(x, 2),
    "sici_c": lambda x: special.sici(x)[1],
    "sici_s": lambda x: special.sici(x)[0],
}


# ---- which functions there are --------------------------------------------------------------


def shapes(f, *operands):
    """Of what ``f`` gives of arrays of these shapes; None if it takes no such."""
    try:
        out = phalanx.eval_shape(f, *[phalanx.ShapeDtypeStruct(s, np.float32) for s in operands])
    except Exception:
        return None
    return [(leaf.shape, leaf.dtype) for leaf in phalanx.tree.leaves(out)]


def is_elementwise(f):
    """Whether ``f`` takes one array or two of floats, or numbers, and gives as many."""
    return any(
        found and set(found) == {(shape, np.dtype(np.float32))}
        for count in (1, 2)
        for shape in ((2, 3),)
        if (found := shapes(f, *[shape] * count)) and shapes(f, *[()] * count)
        and {s for s, _ in shapes(f, *[()] * count)} == {()}
    )  # fmt: skip


def public():
    """Each function that the modules offer, by the name of its module and its own."""
    return {
        (place, name): f
        for place, module in MODULES.items()
        for name in module.__all__
        if callable(f := getattr(module, name))
        and getattr(f, "__module__", "").startswith("phalanx")
    }


def known(name):
    name = ALIASES.get(name, name)
    return [table[name] for table in (OF_ONE, OF_TWO) if name in table]


@functools.cache
def by_name():
    """The public functions of each name in the tables."""
    found = {}
    for (place, name), f in public().items():
        if known(name) and is_elementwise(f):
            found.setdefault(ALIASES.get(name, name), []).append((f"{place}.{name}", f))
    return found


def functions(name):
    return [(name, CALLED[name])] if name in CALLED else by_name()[name]


@pytest.mark.filterwarnings("ignore:Explicitly requested dtype")
def test_every_elementwise_function_is_compared_or_has_a_reason():
    others = {
        f"{place}.{name}"
        for (place, name), f in public().items()
        if not known(name) and is_elementwise(f)
    }
    assert others == {*exemptions("slopes-of-all-sizes")}


# ---- where ----------------------------------------------------------------------------------


def sizes(dtype, count):
    """Of numbers of the dtype: so many over its whole range, and half as many near 1."""
    info = ml_dtypes.finfo(dtype)
    low, high = np.log2(float(info.tiny)) + 1, float(np.log2(np.longdouble(info.max))) - 0.1
    far, near = 2 ** np.linspace(low, high, count), np.linspace(0.3, 20, count // 2)
    return np.concatenate([far, near, [40, 80]])


def single_points(dtype, count):
    eps = float(ml_dtypes.finfo(dtype).eps)
    beside = [s * n * (1 + k * eps) for n in (1, 2, 3) for k in (-16, -1, 0, 2) for s in (1, -1)]
    x = sizes(dtype, count)
    lost = float(ml_dtypes.finfo(dtype).tiny) / 8 * np.array([-1, 0, 1])
    return [np.concatenate([-x, x, beside, lost]).astype(dtype)]


def pairs_of_points(dtype, count, seed):
    draw = np.random.default_rng(seed)
    pool = sizes(dtype, 200)
    near = 2 ** draw.uniform(-8, 8, (count, 2))
    drawn = np.where(draw.random((count, 1)) < 0.5, draw.choice(pool, (count, 2)), near)
    close = draw.random(count) < 0.2
    drawn[close, 1] = drawn[close, 0] * (1 + draw.uniform(-0.1, 0.1, close.sum()))
    drawn *= draw.choice([-1, 1], drawn.shape)
    return list(drawn.astype(dtype).T)


def points(name, of, dtype):
    fact = TABLES[of][name]
    count = fact.points if dtype in (np.float32, np.float64) else fact.points // 3
    if of == "of one":
        xs, most = single_points(dtype, count // 2), 4 * count
    else:
        seed = int(hashlib.sha256(name.encode()).hexdigest()[:8], 16)
        xs, most = pairs_of_points(dtype, 400, seed), count
    for i in fact.whole:
        xs[i] = np.floor(abs(xs[i].astype(np.float64)) % 8 + 1).astype(dtype)
    with np.errstate(all="ignore"):
        wide = [x.astype(np.float64) for x in xs]
        chosen = np.flatnonzero(np.isfinite(wide).all(0) & fact.inside(*wide))[:most]
    return [x[chosen] for x in xs]


# ---- what is expected -----------------------------------------------------------------------


def slopes_beside(fact, at, i):
    """The first three derivatives by the i-th argument."""

    def along(f):
        return lambda t: f(*at[:i], t, *at[i + 1 :])

    if fact.slopes:
        f = along(fact.slopes[fact.by.index(i)])
        with mp.workdps(60):
            first = f(at[i])
        return first, *derivatives(f, at[i], 2)
    return derivatives(along(fact.value), at[i], 3)


def slopes_at(fact, xs, i):
    """Two derivatives, and how much of them relative changes of operands make."""
    at = [mpf(float(x)) for x in xs]
    first, second, third = slopes_beside(fact, at, i)
    moves, bends = abs(at[i] * second), abs(at[i] * third)
    for j in set(fact.by) - {i}:
        beside = [*at[:j], at[j] * (1 + MOVE), *at[j + 1 :]]
        other = slopes_beside(fact, beside, i)
        moves += abs(other[0] - first) / MOVE
        bends += abs(other[1] - second) / MOVE
    return first, second, moves, bends


MOVE = mpf(2) ** -20


def expected(fact, xs, i):
    rows = [slopes_at(fact, row, i) for row in zip(*xs, strict=True)]
    return np.array([[float(v) for v in row] for row in rows]).reshape(-1, 4).T


def slopes_of(f, by):
    """By each operand the derivative in either mode, and the second one, compiled."""

    def each(*xs):
        return [differentiated(lambda t, i=i: f(*xs[:i], t, *xs[i + 1 :]), xs[i]) for i in by]

    return phalanx.jit(each)


def differentiated(f, x):
    def once(t):
        return phalanx.vjp(f, t)[1](jnp.ones_like(t))[0]

    ones = jnp.ones_like(x)
    return once(x), phalanx.jvp(f, (x,), (ones,))[1], phalanx.jvp(once, (x,), (ones,))[1]


def wrong(found, wanted, moves, units, xs):
    """Where ``found`` is off: not close, nor infinite with what no number of the dtype holds."""
    info = ml_dtypes.finfo(found.dtype)
    eps, tiny, largest = (float(v) for v in (info.eps, info.tiny, info.max))
    found, wide = found.astype(np.float64), [abs(x.astype(np.float64)) for x in xs]
    least = 8 * tiny * np.minimum(1 + np.max(wide, 0) ** 2, 1e4)  # below it all is 0
    right = abs(found - wanted) <= units * eps * (abs(wanted) + moves) + least
    over = (abs(wanted) > largest / 2) & (found * np.sign(wanted) > largest / 4)
    anywhere = ~np.isfinite(moves) & np.isfinite(wanted)  # that is where its neighbours are
    flushed = np.any([(x < tiny) & (x > 0) for x in wide], 0)  # as platforms may do
    flushed &= (found * wanted >= 0) | (abs(wanted) > largest)
    return ~(right | over | anywhere | flushed | np.isnan(wanted))


def faults(label, found, wanted, moves, units, xs):
    off = np.flatnonzero(wrong(np.asarray(found), wanted, moves, units, xs))
    return [
        f"{label} at {', '.join(str(x[k]) for x in xs)}: {found[k]}, not {wanted[k]}" for k in off
    ]


TABLES = {"of one": OF_ONE, "of two": OF_TWO}
CASES = [(name, of) for of, table in TABLES.items() for name in table]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_derivatives_have_digits_everywhere(case, kind):
    told = [line for dtype in TYPES[kind] for line in compared(*case, dtype)]
    assert not told, "\n".join(told[:20])


def compared(name, of, dtype):
    fact = TABLES[of][name]
    with phalanx.enable_x64(dtype == np.float64), np.errstate(all="ignore"):
        xs = points(name, of, dtype)
        assert xs[0].size
        compiled = [slopes_of(f, fact.by)(*xs) for _, f in functions(name)]
        told = []
        for n, i in enumerate(fact.by):
            first, second, moves, bends = expected(fact, xs, i)
            # A sum of infinities, such as derivatives of a product beyond all numbers, is none.
            second = np.where(abs(first) > float(ml_dtypes.finfo(dtype).max), np.nan, second)
            for (label, _), found in zip(functions(name), compiled, strict=True):
                reverse, forward, twice = found[n]
                assert twice.dtype == dtype
                for y in (reverse, forward):
                    told += faults(f"{label}' by {i}", y, first, moves, fact.units[0], xs)
                told += faults(f"{label}'' by {i}", twice, second, bends, fact.units[1], xs)
    return told
