"""Programs split into a primal and a linear half, and residuals between them."""

import numpy as np
import pytest

import phalanx as ph
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.core.primitive import ZERO, Linear
from phalanx.core.types import typeof
from phalanx.transforms.linearize import jvp_program, linearize_program
from phalanx.transforms.stage import evaluate
from phalanx.transforms.transpose import backward

RNG = np.random.default_rng(1)
X, Y, DX, DY = RNG.normal(size=(4, 3)).astype(np.float32)
M = RNG.normal(size=(3, 3)).astype(np.float32)

PROGRAMS = {
    "plain": lambda x, y: (jnp.sin(x) * y, x + y),
    "a call": lambda x, y: ph.jit(lambda x, y: x * y * x)(x, y),
    "a branch": lambda x, y: lax.cond(x[0] > 0, lambda: x * y, lambda: jnp.exp(x) + y),
    "a scan": lambda x, y: lax.scan(lambda c, r: (jnp.sin(c) * r, c * c), x, jnp.stack([y, x])),
    "a product": lambda x, y: ((M @ x) * y, jnp.linalg.norm(x)),
    "one result without tangent": lambda x, y: (x * y, jnp.floor(y), 3.0 * y),
    "lanes": lambda x, y: ph.pmap(lambda r, s: jnp.tanh(r) * s)(x, y),
}


def differences(name, direction):
    """Directional derivatives, by differences in float64."""
    with ph.enable_x64():
        wide = [x.astype(np.float64) for x in (X, Y)]
        program = ph.make_program(PROGRAMS[name])(*wide)

        def at(h):
            xs = [x + h * d for x, d in zip(wide, direction, strict=True)]
            return [np.asarray(y, np.float64) for y in evaluate(program, xs)]

        h = 1e-5
        return [(u - v) / (2 * h) for u, v in zip(at(h), at(-h), strict=True)]


@pytest.mark.parametrize("active", [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_halves_together_are_the_derivative(name, active):
    program = ph.make_program(PROGRAMS[name])(X, Y)
    halves = linearize_program(program, active)
    computed = evaluate(halves.primal, [X, Y])
    results, computed = computed[: len(program.outputs)], computed[len(program.outputs) :]
    residuals = halves.residuals([X, Y], computed)
    tangents = [t for t, a in zip([DX, DY], active, strict=True) if a]
    out = iter(evaluate(halves.linear, [*residuals, *tangents]))
    slopes = [next(out) if n else np.zeros(()) for n in halves.nonzero]

    together = jvp_program(program, active)
    assert together.about == halves.nonzero
    both = evaluate(together.program, [X, Y, *tangents])
    count = len(program.outputs)
    moved = [t * a for t, a in zip([DX, DY], active, strict=True)]
    for got, wanted in zip(results, evaluate(program, [X, Y]), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6)
    rest = iter(both[count:])
    for got, n, wanted in zip(slopes, halves.nonzero, differences(name, moved), strict=True):
        np.testing.assert_allclose(got, wanted if n else 0, rtol=2e-4, atol=2e-5)
        if n:
            np.testing.assert_allclose(got, next(rest), rtol=1e-5, atol=1e-6)
        else:
            assert not np.any(np.abs(wanted) > 1e-6)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_linear_half_is_linear(name):
    program = ph.make_program(PROGRAMS[name])(X, Y)
    halves = linearize_program(program, (True, True))
    residuals = halves.residuals([X, Y], evaluate(halves.primal, [X, Y])[len(program.outputs) :])

    def slope(*tangents):
        return [np.asarray(t) for t in evaluate(halves.linear, [*residuals, *tangents])]

    for one, other, both in zip(
        slope(DX, DY), slope(X, 2 * Y), slope(3 * DX - X, 3 * DY - 2 * Y), strict=True
    ):
        np.testing.assert_allclose(both, 3 * one - other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", PROGRAMS)
def test_backward_is_its_transpose(name):
    program = ph.make_program(PROGRAMS[name])(X, Y)
    halves = linearize_program(program, (True, True))
    residuals = halves.residuals([X, Y], evaluate(halves.primal, [X, Y])[len(program.outputs) :])
    linear = halves.linear
    cts = [RNG.normal(size=v.type.shape).astype(np.float32) for v in linear.outputs]
    operands = [*residuals, Linear(typeof(X)), Linear(typeof(Y))]
    back = backward(linear, operands, cts)
    forth = evaluate(linear, [*residuals, DX, DY])
    left = sum(np.vdot(t, d) for t, d in zip(back, (DX, DY), strict=True) if t is not ZERO)
    right = sum(np.vdot(ct, y) for ct, y in zip(cts, forth, strict=True))
    np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-5)


def test_zeros_go_in_and_come_out():
    program = ph.make_program(lambda x, y: (2 * x, 3 * y))(X, Y)
    operands = [Linear(typeof(X)), Linear(typeof(Y))]
    assert backward(program, operands, [ZERO, ZERO]) == [ZERO, ZERO]
    first, second = backward(program, operands, [ZERO, DY])
    assert first is ZERO
    np.testing.assert_allclose(second, 3 * DY)


def test_what_is_not_linear_is_told():
    program = ph.make_program(lambda x: x * x)(X)
    with pytest.raises(TypeError, match=r"mul: at .*depend on the same"):
        backward(program, [Linear(typeof(X))], [DX])


# ---- residuals --------------------------------------------------------------------------------


def stored(f, *args):
    """The types of what is kept for the linear half, besides inputs and results."""
    program = ph.make_program(f)(*args)
    halves = linearize_program(program, (True,) * len(args))
    places = [*halves.primal.output_types[len(program.outputs) :]]
    return [str(t) for t, r in zip(places, halves.repeated, strict=True) if r is None]


@pytest.mark.parametrize(
    ("f", "kept"),
    [
        (lambda x, y: x * y, []),  # its inputs
        (lambda x: jnp.exp(x), []),  # its result
        (lambda x: jnp.sin(x), ["f32[3]"]),
        (lambda x: jnp.ones((5, 3)) * x[None] * jnp.ones((5, 3)), []),
        (lambda x, y: jnp.broadcast_to(x, (9, 3)) * jnp.broadcast_to(y, (9, 3)), []),
        (lambda x: x * jnp.arange(3.0), []),  # made again
        (lambda x, y: jnp.exp(x).reshape(3, 1) * y, ["f32[3]"]),
        (lambda x, y: x.astype(np.float16).astype(np.float32) * y, ["f16[3]"]),
    ],
)
def test_what_is_cheap_to_make_again_is_not_stored(f, kept):
    args = [X, Y][: f.__code__.co_argcount]
    assert stored(f, *args) == kept
