"""Caches, compiling ahead of time, eager execution, and the kinds of errors."""

import contextlib
import gc
import io
import re
import weakref

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax

pytestmark = pytest.mark.spmd

N = 4
ROWS = np.arange(N * 3, dtype=np.float32).reshape(N, 3)


# ---- caches -------------------------------------------------------------------------------------


def test_a_pmapped_function_that_is_dropped_is_collected():
    def make():
        big = np.ones(1000, np.float32)

        def f(x):
            return lax.psum(x * big.sum(), "i")

        mapped = phalanx.pmap(f, axis_name="i")
        mapped(ROWS)
        phalanx.grad(lambda x: mapped(x).sum())(ROWS)
        phalanx.jit(mapped)(ROWS)
        mapped.lower(ROWS)
        return weakref.ref(f), weakref.ref(mapped)

    refs = make()
    gc.collect()
    assert [r() for r in refs] == [None, None]


def test_mapping_the_same_function_again_compiles_nothing(compilations):
    def f(x):
        return x * 2

    phalanx.pmap(f)(ROWS)
    assert len(compilations) == 1
    phalanx.pmap(f)(ROWS)
    assert len(compilations) == 1
    phalanx.pmap(f, out_axes=1)(ROWS)
    assert len(compilations) == 2


def test_clear_cache_traces_anew():
    traced = []
    f = phalanx.pmap(lambda x: traced.append(1) or x)
    f(ROWS), f(ROWS)
    assert len(traced) == 1
    f.clear_cache()
    f(ROWS)
    assert len(traced) == 2


def test_clear_caches_traces_all_functions_anew():
    traced = []
    f = phalanx.jit(lambda x: traced.append("f") or x + 1)
    g = phalanx.pmap(lambda x: traced.append("g") or x)
    f(ROWS), g(ROWS), ROWS + 1
    phalanx.clear_caches()
    np.testing.assert_array_equal(f(ROWS), ROWS + 1)
    g(ROWS)
    assert traced == ["f", "g", "f", "g"]


def test_types_and_shapes_are_told_apart():
    traced = []

    @phalanx.pmap
    def f(x):
        traced.append(str(x.dtype))
        return x

    for x in (ROWS, ROWS.astype(np.int32), ROWS[:, :2], ROWS[:2], ROWS):
        assert f(x).dtype == x.dtype
    assert len(traced) == 4


def test_a_function_that_fails_while_tracing_can_be_called_again():
    fail = [True]

    @phalanx.pmap
    def f(x):
        if fail[0]:
            raise KeyError("mine")
        return x + 1

    with pytest.raises(KeyError, match="mine"):
        f(ROWS)
    fail[0] = False
    np.testing.assert_array_equal(f(ROWS), ROWS + 1)


# ---- ahead of time ------------------------------------------------------------------------------


def test_lower_takes_shapes_in_place_of_data():
    f = phalanx.pmap(lambda x, w: lax.psum(x @ w, "i"), axis_name="i", in_axes=(0, None))
    lowered = f.lower(
        phalanx.ShapeDtypeStruct((N, 3), jnp.float32), phalanx.ShapeDtypeStruct((3,), "float32")
    )
    assert "stablehlo" in lowered.as_text()
    assert lowered.out_info.shape == (N,)
    compiled = lowered.compile()
    np.testing.assert_allclose(compiled(ROWS, np.ones(3, np.float32)), [ROWS.sum()] * N)
    np.testing.assert_allclose(compiled(jnp.asarray(ROWS), jnp.ones(3)), [ROWS.sum()] * N)


def test_compiling_with_options_gives_executables_of_their_own():
    lowered = phalanx.pmap(lambda x: x + 1).lower(ROWS)
    plain = lowered.compile()
    fast = lowered.compile(compiler_options={"xla_cpu_enable_fast_math": True})
    assert plain.runtime_executable() is not fast.runtime_executable()
    np.testing.assert_array_equal(plain(ROWS), fast(ROWS))


def test_bad_compiler_options_fail_also_after_good_ones():
    lowered = phalanx.pmap(lambda x: x + 1).lower(ROWS)
    lowered.compile(compiler_options={"xla_cpu_enable_fast_math": True})
    with pytest.raises(ValueError, match="xla_no_such_flag"):
        lowered.compile(compiler_options={"xla_no_such_flag": True})
    with pytest.raises(ValueError, match="xla_cpu_enable_fast_math"):
        lowered.compile(compiler_options={"xla_cpu_enable_fast_math": "perhaps"})
    np.testing.assert_array_equal(lowered.compile()(ROWS), ROWS + 1)


def test_a_compiled_function_refuses_another_tree_or_dtype_and_says_which_argument():
    compiled = phalanx.pmap(lambda t, y: t["a"] + y).lower({"a": ROWS}, ROWS).compile()
    with pytest.raises(TypeError) as e:
        compiled({"a": ROWS}, ROWS.astype(np.int32))
    assert re.search(r"'y' compiled with f32\[4,3\] and called with i32\[4,3\]", str(e.value))
    with pytest.raises(TypeError, match=r"t\['a'\]' compiled with f32\[4,3\]"):
        compiled({"a": ROWS[:2]}, ROWS)
    with pytest.raises(TypeError, match="compiled for arguments of the structure"):
        compiled({"b": ROWS}, ROWS)
    np.testing.assert_array_equal(compiled({"a": ROWS}, ROWS), 2 * ROWS)


def test_static_arguments_ahead_of_time():
    f = phalanx.pmap(lambda n, x: x * n, static_broadcasted_argnums=0)
    compiled = f.lower(3, ROWS).compile()
    np.testing.assert_array_equal(compiled(ROWS), 3 * ROWS)


def test_eval_shape_of_a_mapped_function():
    found = phalanx.eval_shape(phalanx.pmap(lambda x: {"y": x.sum()}), ROWS)
    assert found["y"].shape == (N,) and found["y"].dtype == np.float32


# ---- without compiling --------------------------------------------------------------------------


def test_disable_jit_computes_the_same_on_the_same_devices():
    n = phalanx.device_count()
    x = np.arange(n * 2, dtype=np.float32).reshape(n, 2)
    f = phalanx.pmap(lambda r: (r / lax.psum(r, "i"), lax.axis_index("i")), axis_name="i")
    expected = f(x + 1)
    with phalanx.disable_jit():
        found = f(x + 1)
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)
        assert got.dtype == want.dtype
        assert [s.device for s in got.addressable_shards] == [
            s.device for s in want.addressable_shards
        ]


def test_disable_jit_shows_the_values_of_every_lane():
    out = io.StringIO()

    def f(x):
        y = x * 10
        print(y, file=out)
        return y

    with phalanx.disable_jit(), contextlib.redirect_stdout(out):
        phalanx.pmap(f)(np.arange(1.0, 4.0, dtype=np.float32))
    for value in ("10.", "20.", "30."):
        assert value in out.getvalue()


def test_disable_jit_of_nests_and_of_results_without_the_axis():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    nest = phalanx.pmap(
        lambda r: phalanx.pmap(lambda v: lax.psum(v, ("i", "j")), "j", out_axes=None)(r),
        axis_name="i",
        out_axes=None,
    )
    with phalanx.disable_jit():
        found = nest(x)
    assert found.shape == () and float(found) == 15


def test_disable_jit_leaves_jitted_functions_to_python():
    seen = []

    @phalanx.jit
    def f(x):
        seen.append(float(x))
        return x if x > 0 else -x

    with phalanx.disable_jit():
        assert float(f(-2.0)) == 2.0
    assert seen == [-2.0]


# ---- errors -------------------------------------------------------------------------------------

MISTAKES = {
    "sizes": lambda: phalanx.pmap(lambda x, y: x)(ROWS, ROWS[:2]),
    "in_axes": lambda: phalanx.pmap(lambda x, y: x, in_axes=(0,))(ROWS, ROWS),
    "out_axes": lambda: phalanx.pmap(lambda x: x, out_axes=(0, 0))(ROWS),
    "position": lambda: phalanx.pmap(lambda x: x, in_axes=5)(ROWS),
    "scalar": lambda: phalanx.pmap(lambda x: x)(1.0),
    "string": lambda: phalanx.pmap(lambda x: x)("rows"),
    "none": lambda: phalanx.pmap(lambda x: x)(None),
    "result": lambda: phalanx.pmap(lambda x: "done")(ROWS),
    "differs": lambda: phalanx.pmap(lambda x: x, out_axes=None)(ROWS),
    "branch": lambda: phalanx.pmap(lambda x: x if x.sum() > 0 else -x)(ROWS),
    "groups": lambda: phalanx.pmap(
        lambda x: lax.psum(x, "i", axis_index_groups=[[0]]), axis_name="i"
    )(ROWS),
    "perm": lambda: phalanx.pmap(lambda x: lax.ppermute(x, "i", [(0, 9)]), axis_name="i")(ROWS),
    "empty": lambda: phalanx.pmap(lambda x: x)(np.zeros((0, 3), np.float32)),
    "function": lambda: phalanx.pmap(3),
    "shapes": lambda: phalanx.pmap(lambda x: x + jnp.ones(2))(ROWS),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_user_errors_are_value_or_type_errors_without_words_of_the_inside(name):
    with pytest.raises((ValueError, TypeError)) as e:
        MISTAKES[name]()
    inside = re.compile(r"shard_?map|mesh|mlir|partition(?!s the axis)|xla|sdy|m0|tracer\b", re.I)
    assert not inside.search(str(e.value)), e.value
    assert len(str(e.value)) > 30
