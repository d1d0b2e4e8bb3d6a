"""Kernels of others, as loops over their grids: what they compute, and what is refused."""

from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy
import numpy as np
import pytest
from jax.experimental import pallas
from jax.experimental.pallas import tpu as pallas_tpu

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.compat.experimental.pallas import call, specs, tpu, triton, within

PL = SimpleNamespace(**vars(call) | vars(specs) | vars(within))
X = np.arange(48, dtype=np.float32).reshape(6, 8)
Y = np.cos(np.arange(80, dtype=np.float32)).reshape(8, 10)


def like(x):
    return phalanx.ShapeDtypeStruct(x.shape, x.dtype)


def doubled(x, out):
    out[...] = x[...] * 2


def product(np, pl, tpu, pallas_call):
    """Of matrices, in blocks, summed in scratch."""

    def kernel(x, y, out, total):
        @pl.when(pl.program_id(2) == 0)
        def begin():
            total[...] = np.zeros_like(total)

        total[...] += x[...] @ y[...]

        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def end():
            out[...] = total[...]

    spec = tpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=0,
        grid=(3, 2, pl.cdiv(8, 4)),
        in_specs=[
            pl.BlockSpec((2, 4), lambda i, j, k: (i, k)),
            pl.BlockSpec((4, 5), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((2, 5), lambda i, j, k: (i, j)),
        scratch_shapes=[tpu.VMEM((2, 5), np.float32)],
    )
    return pallas_call(kernel, (6, 10), grid_spec=spec)(X, Y)


def squeezed(np, pl, tpu, pallas_call):
    """Rows in the opposite order."""
    return pallas_call(
        doubled,
        X.shape,
        grid=(6,),
        in_specs=[pl.BlockSpec((None, 8), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((pl.squeezed, 8), lambda i: (5 - i, 0)),
    )(X)


def ragged(np, pl, tpu, pallas_call):
    """The last blocks reach outside: what they read there is not a number."""
    spec = pl.BlockSpec((4, 5), lambda i, j: (i, j))

    def kernel(x, out):
        out[...] = x[...] + np.isnan(x[...]).sum()

    return pallas_call(kernel, X.shape, grid=(2, 2), in_specs=[spec], out_specs=spec)(X)


def by_element(np, pl, tpu, pallas_call):
    """Blocks that overlap, and what lies around."""
    cut = pl.BlockSpec((pl.Element(4, (1, 1)),), lambda i: (i * 3,))
    return pallas_call(
        doubled, (8,), grid=(2,), in_specs=[cut], out_specs=pl.BlockSpec((4,), lambda i: (i,))
    )(X[0])


def windows(np, pl, tpu, pallas_call):
    """Parts that begin where the number of the program says; the rest is what nobody wrote."""

    def kernel(x, out):
        i = pl.program_id(0)
        out[pl.ds(i * 2, 1), pl.ds(i, 3)] = x[pl.ds(i, 1), pl.ds(1, 3, 2)] + i
        out[pl.ds(i * 2, 2), 7] = out.at[0][pl.ds(i, 2)]

    return pallas_call(kernel, X.shape, grid=(3,))(X)


def prefetched(np, pl, tpu, pallas_call):
    """Which block it is says an operand."""

    def kernel(order, x, out):
        out[...] = x[...] * order[pl.program_id(0)]

    spec = tpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(3,),
        in_specs=[pl.BlockSpec((2, 8), lambda i, order: (order[i], 0))],
        out_specs=pl.BlockSpec((2, 8), lambda i, order: (i, 0)),
    )
    return pallas_call(kernel, X.shape, grid_spec=spec)(np.array([2, 0, 1]), X)


def aliased(np, pl, tpu, pallas_call):
    """A result that begins with the values of an operand; scratch in a function."""

    def kernel(x, out):
        def with_memory(memory):
            memory[...] = x[1] + 1
            out[0] = memory[...]

        pl.run_scoped(with_memory, tpu.VMEM((8,), np.float32))

    return pallas_call(kernel, X.shape, input_output_aliases={0: 0})(X)


def looped(np, pl, tpu, pallas_call):
    """A loop that writes, and operands that are trees."""

    def kernel(rows, out):
        out[...] = np.zeros_like(out)

        @pl.loop(0, 6, step=2)
        def add(i):
            out[...] += rows["a"][i] - rows["b"][i]

    return pallas_call(kernel, (8,))({"a": X, "b": X * X})


CASES = product, squeezed, ragged, by_element, windows, prefetched, aliased, looped


@pytest.mark.parametrize("case", CASES)
def test_kernels_compute_what_they_do_elsewhere(case):
    theirs = case(
        jax.numpy,
        pallas,
        pallas_tpu,
        lambda kernel, shape, **more: pallas.pallas_call(
            kernel, jax.ShapeDtypeStruct(shape, np.float32), interpret=True, **more
        ),
    )
    ours = case(
        jnp,
        PL,
        tpu,
        lambda kernel, shape, **more: call.pallas_call(
            kernel, phalanx.ShapeDtypeStruct(shape, np.float32), **more
        ),
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_grids_count_in_32_bits_whatever_numbers_are():
    def kernel(x, out):
        assert call.program_id(0).dtype == "int32"
        out[...] = x[...] + call.program_id(1)

    spec = specs.BlockSpec((2, np.int64(4)), lambda i, j: (i, j))
    with phalanx.enable_x64(True):
        f = call.pallas_call(
            kernel, like(X), grid=(3, np.int64(2)), in_specs=[spec], out_specs=spec
        )
        np.testing.assert_array_equal(f(X), X + np.repeat([0, 1], 4))


def test_what_a_kernel_raises_comes_after_nothing():
    def kernel(x, out):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine") as raised:
        call.pallas_call(kernel, like(X), grid=(6,))(X)
    assert raised.value.__context__ is None


def test_kernels_have_lanes_and_derivatives():
    def f(x, by):
        spec = specs.BlockSpec((3, 8), lambda i: (i, 0))
        return call.pallas_call(
            lambda x, by, out: out.set(jnp.sin(x[...]) * by[...]),
            like(x),
            grid=2,
            in_specs=[spec, None],
            out_specs=spec,
        )(x, by)

    x = jnp.asarray(X)
    np.testing.assert_allclose(phalanx.vmap(f, (0, None))(jnp.stack([x, -x]), 3.0)[1], -f(x, 3.0))
    np.testing.assert_allclose(phalanx.pmap(f)(x[None], jnp.ones(1))[0], jnp.sin(x), rtol=1e-6)
    slope = phalanx.grad(lambda x: f(x, 2.0).sum())(x)
    np.testing.assert_allclose(slope, 2 * np.cos(X), atol=1e-5)


def test_a_compiled_function_asks_for_the_program_that_runs():
    @phalanx.jit
    def number():
        return call.program_id(0)

    def kernel(out):
        out[call.program_id(0)] = number()

    for count in (3, 4):
        shape = phalanx.ShapeDtypeStruct((count,), "int32")
        assert [*call.pallas_call(kernel, shape, grid=(count,))()] == [*range(count)]


def test_pipelines_and_copies_of_kernels_for_tpus():
    def kernel(x, out, memory, done):
        copy = tpu.make_async_copy(x.at[specs.ds(2, 4)], memory, done.at[0])
        copy.start()
        copy.wait()
        spec = specs.BlockSpec((2, 8), lambda i: (i, 0))
        tpu.emit_pipeline(doubled, grid=(2,), in_specs=[spec], out_specs=[spec])(memory, out)

    f = call.pallas_call(
        kernel,
        phalanx.ShapeDtypeStruct((4, 8), "float32"),
        in_specs=[specs.BlockSpec(memory_space=tpu.HBM)],
        scratch_shapes=[tpu.VMEM((4, 8), "float32"), tpu.SemaphoreType.DMA((1,))],
    )
    np.testing.assert_array_equal(f(X), 2 * X[2:6])


def test_what_kernels_for_gpus_call():
    def kernel(x, count, out):
        some = lax.iota("int32", 8) < 5
        triton.store(out, triton.load(x, mask=some, other=-1.0), mask=some | (x[...] > 6))
        assert triton.atomic_add(out, 0, 10.0, mask=count[0] > 0).shape == ()

    out = call.pallas_call(kernel, like(X[0]))(X[0], np.ones(1, np.int32))
    np.testing.assert_array_equal(out, [10, 1, 2, 3, 4, np.nan, np.nan, -1])


def test_bits_and_rolls():
    shorts = tpu.bitcast(jnp.asarray([[1 + (2 << 16)], [3]], "int32"), "int16")
    assert shorts.tolist() == [[1], [2], [3], [0]]
    assert tpu.bitcast(shorts, "int32").tolist() == [[1 + (2 << 16)], [3]]
    rolled = tpu.roll(jnp.asarray(X), 1, 1, stride=2, stride_axis=0)
    np.testing.assert_array_equal(rolled, [np.roll(row, 1 + 2 * i) for i, row in enumerate(X)])


_row = specs.BlockSpec((1, 8), lambda i: (i, 0))


def _cut(**changes):
    return {"in_specs": [_row.replace(**changes)]}


def _halved(i):
    return i / 2, 0


_BEYOND = {"input_output_aliases": {1: 0}}
_SHARED = {"out_shape": like(Y), "input_output_aliases": {0: 0}}


@pytest.mark.parametrize(
    ("error", "match", "kernel", "more"),
    [
        (ValueError, "returned float, and should return None", lambda x, out: 1.0, {}),
        (TypeError, "a kernel is a function of references, got 'x'", "x", {}),
        (ValueError, "out_shape needs a shape and a dtype.* got 6", doubled, {"out_shape": (6,)}),
        (ValueError, r"a grid is a tuple of integers, got \(2.5,\)", doubled, {"grid": (2.5,)}),
        (ValueError, r"must return integers, returned \(", doubled, _cut(index_map=_halved)),
        (
            ValueError,
            "a positive length in each.* got 0",
            doubled,
            _cut(block_shape=(1, 0)),
        ),
        (ValueError, "positive length", doubled, _cut(block_shape=(1, specs.Element(-2)))),
        (ValueError, "in_specs must be structured as the operands", doubled, {"in_specs": []}),
        (ValueError, "the operands, a list, got BlockSpec", doubled, {"in_specs": _row}),
        (ValueError, r"\(6, 8\).* as many dimensions", doubled, _cut(block_shape=(8,))),
        (ValueError, "must return 2 values", doubled, _cut(index_map=lambda i: i)),
        (NotImplementedError, "cannot be 'x'", doubled, _cut(block_shape=(1, "x"))),
        (TypeError, "along 1 axes of the grid, and", doubled, _cut(index_map=lambda i, j: (i, j))),
        (ValueError, "shares memory", doubled, _SHARED),
        (ValueError, "has 1: 0, and there are 1 operands", doubled, _SHARED | _BEYOND),
        (ValueError, "grid is given, and grid_spec", doubled, {"grid_spec": specs.GridSpec((6,))}),
        (ValueError, r"program_id\(1\).*a grid of 1 axes", lambda x, out: call.program_id(1), {}),
    ],
)
def test_mistakes_are_told_with_the_line(error, match, kernel, more):
    given = {"out_shape": like(X), "grid": (6,)} | more
    with pytest.raises(error, match=match) as raised:
        call.pallas_call(kernel, **given)(X)
    assert "test_kernels.py:" in str(raised.value)


def test_there_is_no_program_outside_of_kernels():
    with pytest.raises(ValueError, match=r"program_id\(0\) is called in no kernel"):
        call.program_id(0)
    with pytest.raises(TypeError, match="a Python integer"):
        specs.ds(0, jnp.int32(1) + partial(jnp.ones, 1)()[0])
    with pytest.raises(TypeError, match=r"a tuple with a length.* got 3 at .*test_kernels.py:"):
        specs.BlockSpec(3, lambda i: i)
