"""Operands and results of kernels that share memory: who sees what was written, and when."""

from types import SimpleNamespace

import jax
import jax.numpy
import numpy as np
import pytest
from jax.experimental import pallas
from jax.experimental.pallas import tpu as pallas_tpu

import phalanx
import phalanx.numpy as jnp
from phalanx.compat.experimental.pallas import call, specs, tpu, within
from phalanx.laws import check_grads
from tests.releases import OLDER

SHARED = pytest.mark.skipif(OLDER, reason="older releases interpret them as two memories")

PL = SimpleNamespace(**vars(call) | vars(specs) | vars(within))
X = np.arange(8, dtype=np.float32)
HALF, FIRST = (lambda i: (i,)), (lambda i: (0,))


def cut(pl, length, index_map):
    return pl.BlockSpec((length,), index_map)


def at_once(pl):
    """The second line reads what the first did not write: a program has blocks of its own."""

    def kernel(x, out):
        out[...] = x[...] * 2
        out[...] = x[...] + out[...]

    return kernel, {}


def of_the_one_before(pl):
    """Each program reads the block that the one before it wrote."""

    def kernel(x, out):
        out[...] = x[...] + 10

    before = cut(pl, 2, lambda i: (abs(i - 1),))
    return kernel, {"grid": (4,), "in_specs": [before], "out_specs": cut(pl, 2, HALF)}


def again_and_again(pl):
    """All programs add to one block."""

    def kernel(x, out):
        out[...] = x[...] + pl.program_id(0)

    block = cut(pl, 4, FIRST)
    return kernel, {"grid": (4,), "in_specs": [block], "out_specs": block}


def whole(pl):
    def kernel(x, out):
        i = pl.program_id(0)
        out[i] = x[abs(i - 1)] + 1

    return kernel, {"grid": (8,)}


def read_through_the_result(pl):
    """What each holds where the other was written."""

    def kernel(x, out):
        out[...] = out[...] + x[...]

    ends = {"in_specs": [cut(pl, 4, HALF)], "out_specs": cut(pl, 4, lambda i: (1 - i,))}
    return kernel, {"grid": (2,), **ends}


def operands_written(pl):
    """A kernel that writes to its operand, of which the last program sees the sum."""

    def kernel(x, out):
        x[0] = x[0] + 1.0
        out[pl.program_id(0)] = x[0]

    block = cut(pl, 8, FIRST)
    return kernel, {"grid": (4,), "in_specs": [block], "out_specs": block}


def nothing_written(pl):
    return (lambda x, out: None), {"grid": (2,)}


def ragged(pl):
    """The last block reaches outside."""

    def kernel(x, out):
        out[...] = x[...] + 100

    block = cut(pl, 3, HALF)
    return kernel, {"grid": (3,), "in_specs": [block], "out_specs": block}


ONE = at_once, of_the_one_before, again_and_again, whole, read_through_the_result
ONE += operands_written, nothing_written, ragged


def theirs(case, **more):
    kernel, given = case(pallas)
    shape = jax.ShapeDtypeStruct(X.shape, X.dtype)
    return pallas.pallas_call(kernel, shape, **{"interpret": True} | given | more)


def ours(case, **more):
    kernel, given = case(PL)
    return call.pallas_call(kernel, phalanx.ShapeDtypeStruct(X.shape, X.dtype), **given | more)


@pytest.mark.parametrize(
    "aliases", [pytest.param({0: 0}, marks=SHARED), {}], ids=["shared", "apart"]
)
@pytest.mark.parametrize("case", ONE)
def test_programs_see_what_earlier_ones_wrote_as_where_kernels_are_interpreted(case, aliases):
    wanted = theirs(case, input_output_aliases=aliases)(X)
    f = ours(case, input_output_aliases=aliases)
    given = jnp.asarray(X)
    np.testing.assert_array_equal(f(given), wanted)
    np.testing.assert_array_equal(phalanx.jit(lambda x: f(x) * 1)(given), wanted)
    np.testing.assert_array_equal(given, X)  # the caller's is another one


@pytest.mark.parametrize("case", [c for c in ONE if c is not operands_written])
def test_each_lane_has_memory_of_its_own(case):
    lanes = np.stack([X, X * 10, -X])
    f = ours(case, input_output_aliases={0: 0})
    for got in (phalanx.vmap(f)(lanes), phalanx.pmap(f)(lanes), phalanx.lax.map(f, lanes)):
        np.testing.assert_array_equal(got, [f(lane) for lane in lanes])


@pytest.mark.parametrize("case", [of_the_one_before, again_and_again, whole, at_once])
def test_derivatives_go_through_memory(case):
    f = ours(case, input_output_aliases={0: 0})
    check_grads(lambda x: jnp.sin(f(x)), (X / 7,), order=2, modes=("fwd", "rev"))


@pytest.mark.parametrize("space", ["ANY", "HBM"])
@pytest.mark.parametrize("grid", [(), (2,)])
@pytest.mark.parametrize("by", ["result", "operand"])
def test_slow_memory_is_one_within_a_program(space, grid, by):
    """There kernels copy, and see at once what they have written under the other name."""

    def made(pl, tpu, space):
        def kernel(x, out, fast):
            written, read = (x, out) if by == "operand" else (out, x)
            tpu.sync_copy(read.at[pl.ds(0, 4)], fast)
            fast[...] = fast[...] + 10
            tpu.sync_copy(fast, written.at[pl.ds(4, 4)])
            tpu.sync_copy(read.at[pl.ds(4, 4)], fast)
            fast[...] = fast[...] + 10
            tpu.sync_copy(fast, out.at[pl.ds(0, 4)])

        spec = pl.BlockSpec(memory_space=space)
        scratch = [tpu.VMEM((4,), np.float32)]
        given = {"grid": grid, "in_specs": [spec], "out_specs": spec, "scratch_shapes": scratch}
        return kernel, given | {"input_output_aliases": {0: 0}}

    their_space = pallas_tpu.HBM if space == "HBM" else pallas.ANY
    wanted = theirs(
        lambda pl: made(pl, pallas_tpu, their_space), interpret=pallas_tpu.InterpretParams()
    )(X)
    f = ours(lambda pl: made(pl, tpu, getattr(tpu.MemorySpace, space)))
    np.testing.assert_array_equal(f(X), wanted)


@SHARED
@pytest.mark.parametrize("aliases", [{0: 1, 1: 0}, {1: 0, 0: 1}, {1: 1}, {0: 1}])
def test_several_share_memory_in_any_order(aliases):
    def kernel(a, b, out, other):
        out[...] = b[...] + 1
        other[...] = other[...] + a[...]

    def with_both(pl, given, shape):
        halves, first = cut(pl, 4, HALF), cut(pl, 4, FIRST)
        more = {"grid": (2,), "in_specs": [halves, first], "out_specs": [halves, halves]}
        return given(kernel, [shape, shape], input_output_aliases=aliases, **more)(X, X * 10)

    wanted = with_both(
        pallas,
        lambda *a, **k: pallas.pallas_call(*a, interpret=True, **k),
        jax.ShapeDtypeStruct(X.shape, X.dtype),
    )
    got = with_both(PL, call.pallas_call, phalanx.ShapeDtypeStruct(X.shape, X.dtype))
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_pipeline_over_memory_that_is_shared_sees_what_it_wrote():
    def kernel(x, out):
        before = specs.BlockSpec((2,), lambda i: (jnp.maximum(i - 1, 0),))
        after = specs.BlockSpec((2,), lambda i: (i,))
        body = lambda a, b: b.set(a[...] + 10)  # noqa: E731
        tpu.emit_pipeline(body, grid=(4,), in_specs=[before], out_specs=[after])(x, out)

    spec = specs.BlockSpec(memory_space=tpu.HBM)
    shape = phalanx.ShapeDtypeStruct(X.shape, X.dtype)
    f = call.pallas_call(
        kernel, shape, in_specs=[spec], out_specs=spec, input_output_aliases={0: 0}
    )
    np.testing.assert_array_equal(f(X), [10, 11, 20, 21, 30, 31, 40, 41])


def test_two_operands_cannot_share_the_memory_of_one_result():
    f = ours(lambda pl: ((lambda x, y, out: None), {}), input_output_aliases={0: 0, 1: 0})
    with pytest.raises(ValueError, match=r"two operands share.*test_aliased_kernels.py:"):
        f(X, X)
