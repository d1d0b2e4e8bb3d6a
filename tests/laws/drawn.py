"""Programs of arrays: how to draw them, to be run by Phalanx, and by NumPy as the oracle.

Every operation is written once, for both: ``np`` in it is NumPy or ``phalanx.numpy``. Where the
names differ, ``Words`` and NumPy's own counterpart say what is meant.
"""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
from hypothesis import strategies as st

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.control.compiled_call import compiled_call
from phalanx.control.isolated import isolated
from phalanx.control.segment import segment
from phalanx.control.spanned import spanned
from phalanx.core.primitive import REGISTRY

ROWS, COLUMNS = 3, 4
WEIGHTS = (0.5, 0.9)
SHAPES = ((ROWS, COLUMNS), (COLUMNS,))
TABLES = {
    "small": np.linspace(0.5, 1, ROWS * COLUMNS),
    "large": np.linspace(0.5, 1, 5000),  # more than what programs write down
    "numpy": np.linspace(1, 0.5, 5000),
}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def put(x, i, y):
    out = x.copy()
    out[i] = y
    return out


def rows(f, x):
    return np.stack([f(r) for r in x])


def slope_of_sum(f, x):
    """The gradient of an elementwise function, by complex steps."""
    return f(x + 1e-30j).imag / 1e-30


ORACLE = SimpleNamespace(
    np=np,
    sigmoid=sigmoid,
    softmax=softmax,
    put=put,
    rows=rows,
    gradient=slope_of_sum,
    call=lambda f, *xs: f(*xs),
    repeat=lambda f, x: f(f(f(x))),
    window=lambda x, i: x[i : i + 2],
    scan=lambda f, m, v: scanned(np, f, m, v),
    branch=lambda f, m, v: f(m, v) if m.sum() > 0.05 else (np.sin(m), v),
    rule=lambda f, m, v: f(m, v),
    backward_rule=lambda f, m, v: f(m, v),
    memory=lambda f, m, v: f(m, v),
    named=lambda f, m, v: f(m, v),
    linear=lambda f, m, v: f(m, v),
    one_by_one=lambda f, m, v: f(m, v),
    loop=lambda f, m, v: scanned(np, f, m, v),
    never=lambda f, m, v: (m, v),
    no_rows=lambda f, m, v: (m, v),
    mapped=lambda f, m, v: mean_of(np, [f(m * w, v) for w in WEIGHTS]),
    chunks=lambda f, m, v: mean_of(np, [f(m * w, v) for w in WEIGHTS]),
    tables=TABLES,
)


def scanned(np, f, m, v):
    m, v = calm(np, (m, v))
    for weight in WEIGHTS:
        m, v = calm(np, f(m * weight, v))
    return m, v


def mean_of(np, pairs):
    return tuple(np.mean(np.stack(parts), 0) for parts in zip(*pairs, strict=True))


def calm(np, pair):
    """Small, so that what is repeated stays so."""
    return tuple(np.sin(x) for x in pair)


def ruled(f):
    """``f`` with a rule of its own, which says what is true anyway."""
    g = phalanx.custom_jvp(f)

    @g.defjvp
    def rule(primals, tangents):
        values, slopes = phalanx.jvp(f, primals, tangents)
        return values, times_units(slopes)

    return g


def ruled_backward(f):
    """The same for reverse mode."""
    g = phalanx.custom_vjp(f)
    g.defvjp(lambda *xs: (f(*xs), xs), lambda xs, cts: phalanx.vjp(f, *xs)[1](times_units(cts)))
    return g


def times_units(xs):
    """``xs``, by way of arrays that only rules use."""
    return tuple(x * UNITS[0] * MANY_UNITS[-1] for x in xs)


def while_there_are_weights(f, m, v):
    weights = jnp.array(WEIGHTS)

    def step(state):
        i, m, v = state
        return i + 1, *calm(jnp, f(m * weights[i], v))

    start = (0, *calm(jnp, (m, v)))
    return lax.while_loop(lambda state: state[0] < len(WEIGHTS), step, start)[1:]


def linear_in_one(f, m, v):
    """f(m, v), as what it is times a one."""

    def times(mv, one):
        return [one * y for y in f(*mv)]

    def transposed(mv, cts):
        return sum([jnp.vdot(ct, y) for ct, y in zip(cts, f(*mv), strict=True)])

    one = jnp.ones((), m.dtype)
    return tuple(phalanx.custom_derivatives.linear_call(times, transposed, (m, v), one))


def in_lanes(transform, **options):
    def run(f, m, v):
        pairs = transform(lambda w: f(m * w, v), **options)(jnp.array(WEIGHTS))
        return tuple(y.mean(0) for y in pairs)

    return run


with phalanx.config.override(enable_x64=True):
    ON_DEVICES = {k: t if k == "numpy" else jnp.asarray(t) for k, t in TABLES.items()}
    UNITS, MANY_UNITS = jnp.ones(3), jnp.ones(5000)

PHALANX = SimpleNamespace(
    np=jnp,
    sigmoid=lax.logistic,
    softmax=phalanx.nn.softmax,
    put=lambda x, i, y: x.at[i].set(y),
    rows=lambda f, x: phalanx.vmap(f)(x),
    gradient=lambda f, x: phalanx.grad(lambda x: f(x).sum())(x),
    call=lambda f, *xs: phalanx.jit(f)(*xs),
    repeat=lambda f, x: lax.fori_loop(0, 3, lambda i, x: f(x), x),
    window=lambda x, i: lax.dynamic_slice(x, (jnp.int32(i),) + (jnp.int32(0),) * (x.ndim - 1),
                                          (2, *x.shape[1:])),
    scan=lambda f, m, v: lax.scan(
        lambda c, w: (calm(jnp, f(c[0] * w, c[1])), None), calm(jnp, (m, v)),
        jnp.array(WEIGHTS))[0],
    branch=lambda f, m, v: lax.cond(
        m.sum() > 0.05, f, lambda m, v: (jnp.sin(m), v), m, v),
    rule=lambda f, m, v: ruled(f)(m, v),
    backward_rule=lambda f, m, v: ruled_backward(f)(m, v),
    memory=lambda f, m, v: phalanx.checkpoint(f)(m, v),
    loop=while_there_are_weights,
    never=lambda f, m, v: lax.fori_loop(0, 0, lambda i, c: f(*c), (m, v)),
    no_rows=lambda f, m, v: lax.scan(
        lambda c, w: (f(c[0] * w, c[1]), c), (m, v), jnp.zeros(0))[0],
    mapped=in_lanes(phalanx.pmap),
    chunks=in_lanes(phalanx.vmap, lanes_at_once=2),
    named=lambda f, m, v: lax.composite(f, "laws.named")(m, v),
    linear=lambda f, m, v: linear_in_one(f, m, v),
    one_by_one=lambda f, m, v: phalanx.custom_batching.sequential_vmap(f)(m, v),
    tables=ON_DEVICES,
)  # fmt: skip

# Of one operand of any shape; all are bounded where it matters, and smooth almost everywhere.
UNARY = {
    "sin": lambda b, x: b.np.sin(x),
    "cos": lambda b, x: b.np.cos(x) * x,
    "tanh": lambda b, x: b.np.tanh(x),
    "exp": lambda b, x: b.np.exp(b.np.sin(x)),
    "log1p": lambda b, x: b.np.log1p(x * x),
    "sqrt": lambda b, x: b.np.sqrt(1 + x**2),
    "divide": lambda b, x: x / (2 + x * x),
    "rational": lambda b, x: 1 / (1 + b.np.square(x)),
    "abs": lambda b, x: b.np.abs(x) - 0.3,
    "arctan": lambda b, x: b.np.arctan(x),
    "sigmoid": lambda b, x: b.sigmoid(x),
    "where": lambda b, x: b.np.where(x > 0.05, x, 0.3 * x * x),
    "clip": lambda b, x: b.np.clip(x, -0.7, 0.8) + 0.1 * x,
    "power": lambda b, x: b.np.power(1 + x * x, 0.7),
    "astype": lambda b, x: x * (x > 0.11).astype(x.dtype) + 0.01 * x,
    "gradient": lambda b, x: b.gradient(lambda x: b.np.sin(x) * x**2, x),
    "call": lambda b, x: b.call(lambda x: b.np.sin(x) + 0.5 * x, x),
    "calls": lambda b, x: b.call(lambda x: b.call(lambda y: y * b.np.cos(x), x + 1), x),
    "iterate": lambda b, x: b.repeat(lambda x: b.np.sin(x + 0.2), x),
    # of the first dimension, or of all
    "cumsum": lambda b, x: b.np.cumsum(x, 0) / 3,
    "cumprod": lambda b, x: b.np.cumprod(x, 0),
    "sort": lambda b, x: b.np.sort(x, 0),
    "softmax": lambda b, x: b.softmax(x),
    "flip": lambda b, x: x[::-1],
    "roll": lambda b, x: b.np.roll(x, 1, 0),
    "strided": lambda b, x: b.np.concatenate([x[::2], x[1::2]], 0),
    "take": lambda b, x: b.np.take(x, np.arange(len(x))[::-1] // 2, 0),
    "put": lambda b, x: b.put(x, 1, 0.5 * x[0]),
    "reshape": lambda b, x: b.np.reshape(b.np.reshape(x, (2, -1)).T, x.shape),
    "center": lambda b, x: x - b.np.mean(x, 0, keepdims=True),
    "scale": lambda b, x: x / (1 + b.np.max(b.np.abs(x))),
    "variance": lambda b, x: x * b.np.var(x),
    "sum": lambda b, x: x + b.np.sum(b.np.sin(x), 0, keepdims=True) / 4,
    "product": lambda b, x: x * b.np.prod(b.np.cos(x), 0, keepdims=True),
    "minimum": lambda b, x: x - b.np.min(x, 0, keepdims=True) * 0.5,
    "window": lambda b, x: x * b.np.sum(b.window(x, 1)),
    "norm": lambda b, x: x / b.np.sqrt(1 + b.np.vdot(x, x)),
}
BINARY = {
    "add": lambda b, x, y: x + y,
    "subtract": lambda b, x, y: x - 0.5 * y,
    "multiply": lambda b, x, y: x * y,
    "divide by": lambda b, x, y: x / (1 + y * y),
    "maximum": lambda b, x, y: b.np.maximum(x, y),
    "minimum of": lambda b, x, y: b.np.minimum(x, 0.7 * y),
    "choose": lambda b, x, y: b.np.where(x > y, x * 0.5, y),
    "arctan2": lambda b, x, y: b.np.arctan2(x, 1.5 + y * y),
    "hypot": lambda b, x, y: b.np.hypot(1 + x, y),
}
# Of a matrix and a vector, to either.
MIXED = {
    "matvec": lambda b, m, v: b.np.tanh(m @ v)[:, None] * m,
    "vecmat": lambda b, m, v: v + (b.np.sin(m @ v) @ m) / 2,
    "outer": lambda b, m, v: m + b.np.outer(b.np.sum(m, 1), v) / 3,
    "einsum": lambda b, m, v: b.np.einsum("ij,kj,k->ij", m, m, b.np.sum(m * v, 1)) / 4,
    "matmul": lambda b, m, v: (m @ m.T) @ m / 3,
    "row": lambda b, m, v: v * m[1] + m[:, 2].sum(),
    "rows": lambda b, m, v: b.rows(lambda r: r / (1 + (r * v).sum() ** 2), m),
    "diagonal": lambda b, m, v: v + b.np.trace(m[:, :ROWS]),
    "transpose": lambda b, m, v: (m.T * v[:, None]).T,
}


# What a function uses besides its operands: arrays, or the operands of the function around it.
CAPTURED = (*TABLES, "outer")


def captured(b, name, x, outer):
    if name == "outer":
        return x + 0.3 * b.np.sin(outer)
    return x * b.np.take(b.tables[name], np.arange(x.size)).reshape(x.shape)


# Around a program of both. A function with a rule for reverse mode has no forward mode, and a loop
# whose length is not known no reverse mode.
BOTH_WAYS = (
    *("scan", "branch", "memory", "call both", "never", "no_rows", "mapped", "chunks"),
    *("named", "linear", "one_by_one"),
)
AROUND = (*BOTH_WAYS, "rule")
BACKWARD = (*BOTH_WAYS, "backward_rule")
FORWARD = (*AROUND, "loop")
EVERYTHING = (*BACKWARD, "rule", "loop")


def holding_programs():
    """All primitives with programs that functions of the user's can make in one process."""
    made_in_lowering, over_processes, not_inside_another = (
        {segment, isolated},
        spanned,
        compiled_call,
    )
    every = {p for p in REGISTRY.values() if p.subprograms is not None}
    return every - made_in_lowering - {over_processes, not_inside_another}


@dataclass(frozen=True)
class Drawn:
    """Operations on a matrix and a vector, each replacing one of the two.

    A step is a name and which of the two it is for, or a name out of ``EVERYTHING`` and a program.
    """

    steps: tuple

    def run(self, b, m, v, outer=None):
        outer = outer or (m, v)
        for name, target in self.steps:
            if isinstance(target, Drawn):
                m, v = self.around(b, name, target, m, v)
                continue
            if name in CAPTURED:
                new = captured(b, name, (m, v)[target], outer[target])
            elif name in UNARY:
                new = UNARY[name](b, m if target == 0 else v)
            elif name in BINARY:
                new = BINARY[name](b, m, v) if target == 0 else BINARY[name](b, v, m[0])
            else:
                new = MIXED[name](b, m, v)
            m, v = (new, v) if new.ndim == 2 else (m, new)
        return m, v

    def around(self, b, name, program, m, v):
        outer = (m, v) if name != "backward_rule" else None  # it has cotangents for operands only

        def f(m, v):
            return program.run(b, m, v, outer)

        return b.call(f, m, v) if name == "call both" else getattr(b, name)(f, m, v)

    def __call__(self, m, v):
        return self.run(PHALANX, jnp.asarray(m), jnp.asarray(v))

    def oracle(self, m, v):
        return self.run(ORACLE, m, v)

    def arguments(self, seed=0, lanes=()):
        source = np.random.default_rng(seed)
        return tuple(source.uniform(-1, 1, (*lanes, *s)) for s in SHAPES)


NAMES = sorted([*UNARY, *BINARY, *MIXED])
drawn_programs = st.lists(
    st.tuples(st.sampled_from(NAMES), st.integers(0, 1)), min_size=2, max_size=6
).map(lambda steps: Drawn(tuple(steps)))


def nested_programs(around=AROUND, depth=2):
    """Programs in loops, branches, rules and checkpoints, which may be in each other."""
    plain = st.tuples(st.sampled_from(NAMES) | st.sampled_from(CAPTURED), st.integers(0, 1))
    level = st.lists(plain, min_size=1, max_size=3)
    for _ in range(depth):
        inner = level.map(lambda steps: Drawn(tuple(steps)))
        wrapped = st.tuples(st.sampled_from(around), inner)
        level = st.tuples(plain, wrapped, st.lists(st.one_of(plain, wrapped), max_size=2)).map(
            lambda parts: [parts[0], parts[1], *parts[2]]
        )
    return level.map(lambda steps: Drawn(tuple(steps)))
