"""Drawn programs under every transformation, against NumPy and finite differences of it."""

import numpy as np
import pytest
from hypothesis import given

import phalanx
import phalanx.numpy as jnp
from phalanx.core.check import check
from phalanx.core.types import typeof
from phalanx.transforms.stage import evaluate, stage
from tests.compare import close_to_scale as close
from tests.laws.drawn import NAMES, Drawn, drawn_programs
from tests.laws.slopes import smoothly_along

pytestmark = pytest.mark.usefixtures("x64")

EVERY = [Drawn(((name, 0), ("sin", 0), ("sin", 1))) for name in NAMES]


def dot(xs, ys):
    return sum(jnp.vdot(x, y) for x, y in zip(xs, ys, strict=True))


# ---- evaluation -------------------------------------------------------------------------------


@pytest.mark.parametrize("program", EVERY, ids=NAMES)
def test_every_operation(program):
    args = program.arguments()
    close(phalanx.jit(program)(*args), program.oracle(*args))


@given(drawn_programs)
def test_eager_staged_and_compiled(program):
    args = program.arguments()
    expected = program.oracle(*args)
    close(program(*args), expected)
    close(phalanx.jit(program)(*args), expected)
    staged, captured = stage(lambda *xs: list(program(*xs)), list(map(typeof, args)), "drawn")
    check(staged)
    close(phalanx.jit(lambda *xs: evaluate(staged, [*captured, *xs]))(*args), expected)
    with phalanx.disable_jit():
        close(program(*args), expected)


@given(drawn_programs)
def test_transformed_programs_are_well_typed(program):
    args = program.arguments()
    cts = program.arguments(1)
    both = phalanx.vmap(lambda m, v: phalanx.vjp(program, m, v)[1](cts), in_axes=(None, 0))
    check(phalanx.make_program(both)(args[0], np.stack([args[1]] * 2)))
    twice = phalanx.linearize(phalanx.jit(lambda *xs: phalanx.jvp(program, xs, cts)), *args)[1]
    check(phalanx.make_program(twice)(*cts))


@given(drawn_programs)
def test_single_precision(program):
    args = [x.astype(np.float32) for x in program.arguments()]
    with phalanx.config.override(enable_x64=False):
        found = phalanx.jit(program)(*args)
    assert {x.dtype for x in found} == {np.dtype("float32")}
    close(found, program.oracle(*program.arguments()), 1e-3)


# ---- derivatives ------------------------------------------------------------------------------


@given(drawn_programs)
def test_first_derivatives(program):
    args, ts, cts = (program.arguments(seed) for seed in range(3))

    def derivatives(args, ts, cts):
        _, tangents = phalanx.jvp(program, args, ts)
        _, pullback = phalanx.vjp(program, *args)
        _, derivative = phalanx.linearize(program, *args)
        return tangents, pullback(cts), derivative(*ts)

    expected = smoothly_along(program.oracle, args, ts)
    tangents, pulled, again = phalanx.jit(derivatives)(args, ts, cts)
    close(tangents, expected, 1e-6)
    close(again, tangents)
    close(dot(pulled, ts), dot(cts, tangents))


@given(drawn_programs)
def test_derivatives_of_calls(program):
    """Differentiating a compiled function is differentiating the function."""
    args, ts, cts = (program.arguments(seed) for seed in range(3))
    compiled = phalanx.jit(program)
    _, tangents = phalanx.jvp(compiled, args, ts)
    close(tangents, smoothly_along(program.oracle, args, ts), 1e-6)
    pulled = phalanx.vjp(compiled, *args)[1](cts)
    close(dot(pulled, ts), dot(cts, tangents))


@given(drawn_programs)
def test_second_derivatives(program):
    args, ts, us, cts = (program.arguments(seed) for seed in range(4))

    def scalar(f):
        return lambda *args: dot(f(*args), cts)

    def reverse(*args):
        return phalanx.grad(scalar(program), (0, 1))(*args)

    def forward(*args):
        return phalanx.jvp(scalar(program), args, ts)[1]

    @phalanx.jit
    def all_four(args):
        return (
            dot(phalanx.jvp(reverse, args, ts)[1], us),
            dot(phalanx.vjp(reverse, *args)[1](ts), us),
            phalanx.jvp(forward, args, us)[1],
            dot(phalanx.grad(forward, (0, 1))(*args), us),
        )

    def value(*args):
        return sum(np.vdot(y, c) for y, c in zip(program.oracle(*args), cts, strict=True))

    expected = smoothly_along(value, args, ts, us)
    close(all_four(args), (expected,) * 4, 1e-5)


# ---- vectorization ----------------------------------------------------------------------------

LANES = 3


@given(drawn_programs)
def test_vmap_is_a_loop(program):
    lanes = [program.arguments(seed) for seed in range(LANES)]
    expected = [program.oracle(*x) for x in lanes]
    m, v = (np.stack(x) for x in zip(*lanes, strict=True))
    stacked = [np.stack(y, 1) for y in zip(*expected, strict=True)]
    mapped = phalanx.vmap(program, in_axes=(2, -1), out_axes=1)
    close(phalanx.jit(mapped)(np.moveaxis(m, 0, 2), np.moveaxis(v, 0, 1)), stacked)
    shared = [program.oracle(m[0], x) for x in v]
    found = phalanx.jit(phalanx.vmap(program, in_axes=(None, 0)))(m[0], v)
    close(found, [np.stack(y) for y in zip(*shared, strict=True)])


@given(drawn_programs)
def test_gradients_and_vmap_commute(program):
    args = program.arguments(lanes=(LANES,))
    cts = program.arguments(7)

    def value(*args):
        return dot(program(*args), cts)

    def both(*args):
        each = phalanx.vmap(phalanx.grad(value, (0, 1)))(*args)
        whole = phalanx.grad(lambda *args: phalanx.vmap(value)(*args).sum(), (0, 1))(*args)
        return each, whole

    each, whole = phalanx.jit(both)(*args)
    close(each, whole)


@pytest.mark.spmd
@given(drawn_programs)
def test_pmap_and_jit_in_any_order(program):
    args = program.arguments(lanes=(LANES,))
    lanes = [program.oracle(*(a[i] for a in args)) for i in range(LANES)]
    expected = [np.stack(y) for y in zip(*lanes, strict=True)]
    close(phalanx.pmap(program)(*args), expected)
    close(phalanx.pmap(phalanx.jit(program))(*args), expected)
    close(phalanx.jit(phalanx.pmap(program))(*args), expected)
    with phalanx.disable_jit():
        close(phalanx.pmap(program)(*args), expected)


# ---- perturbations do not mix -----------------------------------------------------------------

X = 0.7
TRANSFORMS = {
    "plain": lambda f: f,
    "jit": phalanx.jit,
    "vmap": lambda f: lambda x: phalanx.vmap(f)(jnp.full(2, x))[1],
    "pmap": lambda f: lambda x: phalanx.pmap(f)(jnp.full(2, x))[1],
}
DERIVATIVES = {
    "grad": phalanx.grad,
    "jvp": lambda f: lambda x: phalanx.jvp(f, (x,), (jnp.ones_like(x),))[1],
    "linearize": lambda f: lambda x: phalanx.linearize(f, x)[1](jnp.ones_like(x)),
    "jacrev": phalanx.jacrev,
}


@pytest.mark.parametrize("wrap", TRANSFORMS)
@pytest.mark.parametrize("inner", DERIVATIVES)
@pytest.mark.parametrize("outer", DERIVATIVES)
def test_perturbations(outer, inner, wrap):
    wrapped, d_outer, d_inner = TRANSFORMS[wrap], DERIVATIVES[outer], DERIVATIVES[inner]

    def f(x):
        return x * wrapped(d_inner(lambda y: jnp.sin(x) * y + x * y**2))(x * 1.0)

    # x (sin x + 2 x x)
    close(d_outer(wrapped(f))(X), np.sin(X) + X * np.cos(X) + 6 * X**2)


def test_perturbation_of_a_constant():
    def f(x):
        return x * phalanx.grad(lambda y: x + y)(1.0)

    close(phalanx.grad(f)(X), 1.0)
    close(phalanx.jvp(f, (X,), (1.0,))[1], 1.0)


def test_perturbations_through_a_closure():
    def f(x):
        return phalanx.grad(lambda y: phalanx.grad(lambda z: z * x * y**2)(1.0))(x)

    close(phalanx.grad(f)(X), 4 * X)  # f(x) = 2 x^2
