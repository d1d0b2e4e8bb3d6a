"""Programs on many lanes at once, on words in place of keys, and in branches not all lanes take."""

import itertools

import numpy as np
import pytest

import phalanx as ph
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.base.extended import is_key
from phalanx.core.axes import Axis
from phalanx.core.types import ArrayType, typeof
from phalanx.transforms.batch import batch_program, lane_type, place_lanes, with_lanes
from phalanx.transforms.keys_as_words import on_words
from phalanx.transforms.masking import where_taken, with_condition
from phalanx.transforms.stage import evaluate

RNG = np.random.default_rng(3)
X, Y = RNG.normal(size=(2, 5, 2, 3)).astype(np.float32)  # five lanes of (2, 3)
LANES = Axis(None, 5)

PROGRAMS = {
    "elementwise": lambda x, y: (jnp.sin(x) * y,),
    "a product": lambda x, y: (x @ y.T,),
    "one of both": lambda x, y: (jnp.cos(y), x.sum(0)),
    "a constant": lambda x, y: (jnp.ones(3), x),
    "a scan": lambda x, y: lax.scan(lambda c, r: (c + r, c * r), x[0], y),
    "a branch": lambda x, y: (lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, y),),
    "a loop": lambda x, y: (lax.while_loop(lambda c: c.sum() < 9, lambda c: c + 1, x * y),),
}


@pytest.mark.parametrize(("i", "j"), [*itertools.product([None, 0, 1, 2], repeat=2)][1:])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_on_lanes_is_the_program_on_each(name, i, j):
    program = ph.make_program(PROGRAMS[name])(X[0], Y[0])
    made = batch_program(program, LANES, (i, j))
    args = [x[0] if d is None else np.moveaxis(x, 0, d) for x, d in ((X, i), (Y, j))]
    each = [
        evaluate(program, [X[0 if i is None else k], Y[0 if j is None else k]]) for k in range(5)
    ]
    for n, (out, d) in enumerate(zip(evaluate(made.program, args), made.about, strict=True)):
        expected = np.stack([run[n] for run in each])
        got = out if d is None else np.moveaxis(np.asarray(out), d, 0)
        np.testing.assert_allclose(np.broadcast_to(got, expected.shape), expected, rtol=1e-5)
        assert d is not None or np.ptp(expected, axis=0).max() == 0


def test_lanes_come_first_where_that_is_asked():
    program = ph.make_program(PROGRAMS["a constant"])(X[0], Y[0])
    made = batch_program(program, LANES, (1, None), (True, False))
    constant, x = evaluate(made.program, [np.moveaxis(X, 0, 1), Y[0]])
    assert made.about == (0, 1)
    np.testing.assert_array_equal(constant, np.ones((5, 3)))
    np.testing.assert_array_equal(x, np.moveaxis(X, 0, 1))
    assert batch_program(program, LANES, (1, None)).about == (None, 1)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_types_of_lanes(dim):
    one = ArrayType((4, 6), np.dtype(np.float32))
    many = with_lanes(one, dim, Axis(None, 5))
    assert many.shape[dim] == 5 and lane_type(many, dim) == one
    value = jnp.zeros(many.shape)
    assert typeof(place_lanes(value, dim, 0, 5)).shape == (5, 4, 6)
    assert typeof(place_lanes(value[(slice(None),) * dim + (0,)], None, dim, 5)) == many


# ---- keys -------------------------------------------------------------------------------------

KEY = ph.random.key(7)
KEYS = ph.random.split(KEY, 4)
OF_KEYS = {
    "nothing but keys": lambda k: k,
    "moved": lambda k: k.reshape(2, 2).T,
    "read": lambda k: k[jnp.array([3, 0])],
    "written": lambda k: k.at[1].set(k[2]),
    "compared": lambda k: k == k[0],
    "split": lambda k: ph.random.split(k[0], 3),
    "drawn": lambda k: ph.random.normal(k[1], (3,)),
    "in a scan": lambda k: lax.scan(lambda c, r: (r, ph.random.bits(c)), k[0], k),
    "in a branch": lambda k: lax.cond(True, lambda k: k[0], lambda k: k[1], k),
    "in lanes": lambda k: ph.pmap(lambda r: (r, ph.random.bits(r)))(k),
}


@pytest.mark.parametrize("name", OF_KEYS)
def test_on_words_a_program_does_the_same(name):
    program = ph.make_program(OF_KEYS[name])(KEYS)
    made = on_words(program)
    kinds = [a.type for e in made.walk() for a in (*e.inputs, *e.outputs)]
    assert not any(is_key(t.dtype) for t in (*kinds, *made.input_types, *made.output_types))
    words = evaluate(made, [ph.random.key_data(KEYS)])
    for got, wanted in zip(words, evaluate(program, [KEYS]), strict=True):
        if is_key(typeof(wanted).dtype):
            wanted = ph.random.key_data(wanted)
        np.testing.assert_array_equal(got, wanted)
    assert on_words(made) is made


# ---- branches ---------------------------------------------------------------------------------


def test_a_branch_that_is_not_taken_has_no_derivative_that_is_not_finite():
    program = ph.make_program(lambda x: jnp.log(x) / x)(np.float32(0))
    made = where_taken(program)

    def slope(taken, x):
        return ph.grad(lambda x: evaluate(made, [taken, x])[0])(x)

    assert slope(False, 0.0) == 0
    assert not np.isfinite(slope(True, 0.0))
    np.testing.assert_allclose(slope(True, 2.0), (1 - np.log(2)) / 4, rtol=1e-5)
    np.testing.assert_allclose(evaluate(made, [True, 2.0]), [np.log(2) / 2], rtol=1e-6)


def test_what_has_no_effects_takes_the_condition_and_leaves_it():
    program = ph.make_program(jnp.sin)(np.float32(1))
    made = with_condition(program)
    assert len(made.inputs) == 2 and made.equations == program.equations
