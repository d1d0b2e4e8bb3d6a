"""Modules that are private in the field, and that programs import all the same."""

import importlib

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx.compat.modules import _MIRRORS, MODULES

pytestmark = pytest.mark.usefixtures("served")


@pytest.mark.parametrize(("private", "public"), _MIRRORS.items())
def test_a_private_module_has_the_names_of_the_public_one(private, public):
    here = importlib.import_module(f"jax._src.{private}")
    there = importlib.import_module(f"jax.{public}".rstrip("."))
    assert set(dir(there)) - {n.split(".")[-1] for n in MODULES} <= set(dir(here))


def test_the_class_of_arrays_with_data():
    from jax._src.array import ArrayImpl
    from jax._src.basearray import Array

    assert type(jnp.ones(2)) is ArrayImpl and issubclass(ArrayImpl, Array)


def test_the_current_mesh():
    from jax._src.mesh import get_concrete_mesh, thread_resources
    from jax.interpreters import pxla

    assert pxla.thread_resources is thread_resources
    assert thread_resources.env.physical_mesh.empty
    with phalanx.make_mesh((1,), ("i",)) as mesh:
        assert thread_resources.env.physical_mesh == get_concrete_mesh() == mesh


def test_operands_are_promoted():
    from jax._src.numpy import util

    x, y = util.promote_dtypes(jnp.int32([1, 2]), jnp.float16(3))
    assert (x.dtype, y.dtype, x.shape, y.shape) == ("float16", "float16", (2,), ())
    (z,) = util.promote_dtypes_inexact(jnp.int32([1, 2]))
    assert z.dtype == "float32"
    (w,) = util.promote_dtypes_complex(jnp.int32([1, 2]))
    assert w.dtype == "complex64" and w.tolist() == [1, 2]
    a, b = util.promote_args("mine", np.ones((2, 3), np.float32), jnp.int32([1, 2, 3]))
    assert (a.shape, b.shape, b.dtype) == ((2, 3), (1, 3), "float32")
    assert util.promote_args_inexact("mine", jnp.int32(1))[0].dtype == "float32"
    util.check_arraylike("mine", 1.0, np.ones(2), jnp.ones(2))
    with pytest.raises(TypeError, match=r"mine: .* got a list"):
        util.check_arraylike("mine", [1.0])


def test_the_operation_that_a_compiled_function_is():
    from jax._src import pjit
    from jax.extend.core.primitives import jit_p

    (eqn,) = phalanx.compat.jaxprs.make_jaxpr(phalanx.jit(jnp.sin))(1.0).eqns
    assert eqn.primitive is jit_p is pjit.jit_p and pjit.pjit is not None


def test_complex_dtypes_of_real_ones():
    from jax._src import dtypes

    with phalanx.enable_x64(True):
        for single in ("int32", "float16", "float32", "complex64"):
            assert dtypes.to_complex_dtype(single) == "complex64"
        for double in ("float64", "complex128"):
            assert dtypes.to_complex_dtype(double) == "complex128"


def test_what_has_a_dtype():
    from jax._src.typing import SupportsDType

    assert isinstance(jnp.ones(2), SupportsDType) and isinstance(np.ones(2), SupportsDType)
    assert not isinstance(1.0, SupportsDType)


def test_specs_are_shardings_over_the_mesh_that_is_set():
    from jax._src.pjit import auto_axes
    from jax._src.sharding_impls import canonicalize_sharding

    plain = phalanx.typeof(jnp.ones(2)).sharding
    assert canonicalize_sharding(plain, "mine") is plain and not plain.mesh._any_axis_explicit
    assert canonicalize_sharding(None, "mine") is None
    mesh = phalanx.make_mesh((1,), ("i",), axis_types=(phalanx.sharding.AxisType.Explicit,))
    with phalanx.set_mesh(mesh):
        rows = canonicalize_sharding(phalanx.P("i"), "mine")
        assert rows == phalanx.NamedSharding(mesh.abstract_mesh, phalanx.P("i"))
        assert rows.mesh._any_axis_explicit and mesh._any_axis_explicit
        double = auto_axes(lambda x: 2 * x, axes=rows.mesh.explicit_axes, out_sharding=rows)
        assert double(phalanx.device_put(jnp.ones(2), rows)).tolist() == [2.0, 2.0]


def test_functions_of_lists():
    from jax._src import util

    marks, elements = [True, False, True], [1, 2, 3]
    parts = util.partition_list(marks, elements)
    assert parts == ([2], [1, 3]) and util.merge_lists(marks, *parts) == elements
    assert util.split_list(range(5), [2, 1]) == [[0, 1], [2], [3, 4]]
    assert util.unzip2([(1, "a"), (2, "b")]) == ((1, 2), ("a", "b"))
    assert util.unzip3([]) == ((), (), ())
    assert util.concatenate([[1], (2, 3)]) == [1, 2, 3] and util.prod([2, 3]) == 6
    assert util.subvals((1, 2, 3), [(1, "b")]) == (1, "b", 3)
    assert util.curry(max)(1)(2) == 2
    assert util.wraps(jnp.sin)(lambda x: x).__name__ == "sin"
    with pytest.raises(ValueError, match="shorter"):
        util.safe_map(max, [1, 2], [1])


def test_the_folder_of_compiled_programs(tmp_path):
    from jax.experimental.compilation_cache import compilation_cache

    before = phalanx.config.compilation_cache_dir
    try:
        compilation_cache.set_cache_dir(str(tmp_path))
        assert phalanx.config.compilation_cache_dir == str(tmp_path)
        assert compilation_cache.is_initialized()
        compilation_cache.reset_cache()
        phalanx.config.update("compilation_cache_dir", None)
        assert not compilation_cache.is_initialized()
    finally:
        phalanx.config.update("compilation_cache_dir", before)


def test_the_exception_of_a_rule_that_does_not_know_what_is_differentiated():
    from jax._src.interpreters.ad import CustomVJPException

    def scaled(factor):
        times = phalanx.custom_vjp(lambda x: factor * x)
        times.defvjp(lambda x: (factor * x, None), lambda _, ct: (factor * ct,))
        return times(2.0)

    with pytest.raises(CustomVJPException, match="closes over"):
        phalanx.grad(scaled)(3.0)


def test_the_classes_of_parts_of_arrays():
    from jax._src.numpy.array_methods import _IndexUpdateHelper, _IndexUpdateRef

    x = jnp.ones(2)
    assert type(x.at) is _IndexUpdateHelper and type(x.at[0]) is _IndexUpdateRef


NAMED = {
    "called": lambda f: f(1.0),
    "vmap": lambda f: phalanx.vmap(f)(jnp.ones(2)),
    "named vmap": lambda f: phalanx.vmap(phalanx.vmap(f, axis_name="i"), axis_name="j")(
        jnp.ones((2, 2))
    ),
    "jit in vmap": lambda f: phalanx.vmap(phalanx.jit(f), axis_name="i")(jnp.ones(2)),
    "vmap in jit": lambda f: phalanx.jit(phalanx.vmap(f, axis_name="i"))(jnp.ones(2)),
    "scan in vmap": lambda f: phalanx.vmap(
        lambda y: phalanx.lax.scan(lambda c, x: (f(c), x), y, jnp.ones(2)), axis_name="k"
    )(jnp.ones(2)),
    "grad": lambda f: phalanx.grad(f)(1.0),
    "pmap": lambda f: phalanx.pmap(f, axis_name="p")(jnp.ones(1)),
}
ASKED = [
    f"{name}_DO_NOT_USE"
    for name in ("unsafe_get_axis_names", "nonempty_axis_env", "unsafe_am_i_under_a_vmap")
]


@pytest.mark.parametrize("way", NAMED)
def test_axes_and_transformations_that_are_under_way(way):
    """As kfac-jax and FermiNet ask."""
    from jax.extend import core

    seen = []

    def look(x):
        seen.append([getattr(core, name)() for name in [*ASKED, UNDER_JIT]])
        return x

    NAMED[way](look)
    assert seen == [TOLD[way]]


UNDER_JIT = "unsafe_am_i_under_a_jit_DO_NOT_USE"
TOLD = {  # by jax 0.12: names, whether there are any, under vmap, under jit
    "called": [[], False, False, False],
    "vmap": [[], False, True, False],
    "named vmap": [["j", "i"], True, True, False],
    "jit in vmap": [["i"], True, True, True],
    "vmap in jit": [["i"], True, True, True],
    "scan in vmap": [["k"], True, True, True],
    "grad": [[], False, False, False],
    "pmap": [["p"], True, False, True],
}


def test_factorials_of_series():
    from jax.experimental import jet

    np.testing.assert_allclose(jet.fact(np.arange(6)), [1, 1, 2, 6, 24, 120], rtol=1e-5)
    np.testing.assert_allclose(phalanx.jit(jet.fact)(2.5), 3.3233509, rtol=1e-6)
    assert type(jet.zero_series).__name__ == "ZeroSeries"
