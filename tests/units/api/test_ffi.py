"""Foreign functions: one of C++ that is compiled here, and those of LAPACK that jaxlib brings."""

import ctypes
import getpass
import hashlib
import shutil
import subprocess
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import ffi, lax
from phalanx.core.ffi_records import ForeignFunction, attributes_of

SOURCE = r"""
#include <atomic>
#include <cstdint>
#include "xla/ffi/api/ffi.h"
namespace ffi = xla::ffi;

static std::atomic<int64_t> calls = 0;  // lanes on several devices call side by side

// y = scale * x + shift[0] in every row; it says how many rows there were
static ffi::Error Scaled(ffi::Buffer<ffi::F32> x, ffi::Buffer<ffi::F32> shift, float scale,
                         ffi::ResultBuffer<ffi::F32> y) {
  auto some = shift.element_count() ? shift.typed_data()[0] : 0.0f;
  for (size_t i = 0; i < x.element_count(); ++i)
    y->typed_data()[i] = scale * x.typed_data()[i] + some;
  return ffi::Error::Success();
}

static ffi::Error Count(ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  ++calls;
  for (size_t i = 0; i < x.element_count(); ++i) y->typed_data()[i] = x.typed_data()[i];
  return ffi::Error::Success();
}

// what it is told: n + flag + length of text + table[1] + inner.a
static ffi::Error Told(ffi::Dictionary all, ffi::ResultBuffer<ffi::F32> y) {
  auto n = all.get<int64_t>("n"); auto flag = all.get<bool>("flag");
  auto text = all.get<std::string_view>("text");
  auto table = all.get<ffi::Span<const int32_t>>("table");
  auto inner = all.get<ffi::Dictionary>("inner");
  if (!n || !flag || !text || !table || !inner) return ffi::Error::InvalidArgument("not told");
  auto a = inner->get<double>("a");
  if (!a) return ffi::Error::InvalidArgument("a is no double");
  y->typed_data()[0] = *n + *flag + text->size() + (*table)[1] + *a;
  return ffi::Error::Success();
}

static ffi::Error Fails(ffi::ResultBuffer<ffi::F32>) {
  return ffi::Error(ffi::ErrorCode::kInvalidArgument, "it never works");
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(scaled, Scaled, ffi::Ffi::Bind()
    .Arg<ffi::Buffer<ffi::F32>>().Arg<ffi::Buffer<ffi::F32>>().Attr<float>("scale")
    .Ret<ffi::Buffer<ffi::F32>>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(count, Count, ffi::Ffi::Bind()
    .Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(told, Told, ffi::Ffi::Bind().Attrs()
    .Ret<ffi::Buffer<ffi::F32>>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(fails, Fails, ffi::Ffi::Bind().Ret<ffi::Buffer<ffi::F32>>());
extern "C" int64_t number_of_calls() { return calls; }
"""
X = np.arange(6, dtype=np.float32).reshape(2, 3)
ONE = np.float32([10])


def built():
    """The shared library, which is compiled once for all processes and runs."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("there is no compiler of C++")
    command = [compiler, "-std=c++17", "-O0", "-shared", "-fPIC", f"-I{ffi.include_dir()}"]
    of_what = " ".join([*command, version("jaxlib"), SOURCE])
    told_apart = hashlib.sha256(of_what.encode()).hexdigest()
    folder = Path(tempfile.gettempdir(), f"phalanx-tests-of-{getpass.getuser()}-foreign")
    folder.mkdir(exist_ok=True)
    library = folder / f"{told_apart}.so"
    if not library.exists():
        with tempfile.TemporaryDirectory(dir=folder) as place:
            made = Path(place, "foreign.so")
            Path(place, "foreign.cc").write_text(SOURCE)
            subprocess.run([*command, "-o", made, made.with_suffix(".cc")], check=True)
            made.replace(library)
    return library


@pytest.fixture(scope="module")
def library():
    loaded = ctypes.CDLL(str(built()))
    for name in ("scaled", "count", "told", "fails"):
        ffi.register_ffi_target(f"phalanx_test_{name}", ffi.pycapsule(getattr(loaded, name)))
    loaded.number_of_calls.restype = ctypes.c_int64
    return loaded


def struct(*shape):
    return phalanx.ShapeDtypeStruct(shape, "float32")


def scaled(x, shift, method="broadcast_all", **options):
    call = ffi.ffi_call("phalanx_test_scaled", struct(*x.shape), vmap_method=method, **options)
    return call(x, shift, scale=np.float32(2))


def counted(x, has_side_effect=True, method="sequential"):
    call = ffi.ffi_call(
        "phalanx_test_count", struct(*x.shape), vmap_method=method, has_side_effect=has_side_effect
    )
    return call(x)


def calls_of(library, function):
    before = library.number_of_calls()
    phalanx.block_until_ready(function())
    return library.number_of_calls() - before


# ---- calls ----------------------------------------------------------------------------------


def test_it_is_called(library):
    np.testing.assert_array_equal(scaled(X, ONE), 2 * X + 10)
    product = phalanx.jit(lambda x: scaled(x, ONE).T @ x)
    np.testing.assert_array_equal(product(X), (2 * X + 10).T @ X)
    aliased = phalanx.jit(lambda x: scaled(x + 1, ONE, input_output_aliases={0: 0}))
    np.testing.assert_array_equal(aliased(X), 2 * X + 12)


def test_what_it_is_told(library):
    call = ffi.ffi_call("phalanx_test_told", struct())
    table = np.int32([5, 7])
    assert float(call(n=100, flag=True, text="four", table=table, inner={"a": 0.5})) == 112.5
    with pytest.raises(phalanx.errors.RuntimeFailure, match="not told"):
        call(n=np.int8(1), flag=True, text="four", table=table, inner={"a": 0.5})
    for wrong in (None, 1j, [object()], jnp.ones(2)):
        with pytest.raises(TypeError, match="the attribute n must be a boolean, a number, text"):
            call(n=wrong)


def test_attributes_that_differ_are_told_apart():
    def of(value):
        return attributes_of({"a": value}, "test")

    same = [(1, np.int64(1)), ([1, 2], np.array([1, 2])), ("x", b"x"), ({"b": 2.0}, {"b": 2.0})]
    assert all(of(a) == of(b) and hash(of(a)) == hash(of(b)) for a, b in same)
    other = [(1, 1.0), (1, True), (0.0, -0.0), (1, np.int32(1)), ("1", 1), ([1], 1), ([1], [[1]])]
    assert all(of(a) != of(b) for a, b in other)
    told = {"a": 1, "b": np.float16([1, 2]), "c": {"d": True, "e": "text"}}
    back = ForeignFunction("f", attributes_of(told, "test"), (), (), (), 4, None).values
    assert back["a"] == 1 and back["c"] == told["c"] and back["b"].dtype == np.float16


def test_layouts(library):
    """The function sees elements as they lie in memory."""
    call = ffi.ffi_call(
        "phalanx_test_scaled", struct(2, 3), input_layouts=[(1, 0), None], output_layouts=(0, 1)
    )
    given = call(X, ONE, scale=np.float32(1))
    np.testing.assert_array_equal(given, X.T.reshape(2, 3) + 10)


# ---- lanes ----------------------------------------------------------------------------------


@pytest.mark.spmd
@pytest.mark.parametrize("method", ["sequential", "expand_dims", "broadcast_all"])
@pytest.mark.parametrize("mapping", [phalanx.vmap, phalanx.pmap], ids=["vmap", "pmap"])
def test_lanes(library, method, mapping):
    xs = np.stack([X, X + 1, X + 2, X + 3, X + 4])
    mapped = mapping(lambda x: scaled(x, ONE, method), in_axes=1)
    np.testing.assert_array_equal(mapped(np.moveaxis(xs, 0, 1)), 2 * xs + 10)


def test_lanes_by_method(library):
    def calls(method):
        return calls_of(library, lambda: phalanx.vmap(lambda x: counted(x, False, method))(X))

    assert calls("sequential") == 2
    assert calls("expand_dims") == calls("broadcast_all") == calls("legacy_vectorized") == 1
    with pytest.raises(phalanx.errors.MissingRule, match=r"give vmap_method.*'sequential'"):
        phalanx.vmap(lambda x: scaled(x, ONE, None))(X)
    np.testing.assert_array_equal(phalanx.pmap(lambda x: scaled(x, ONE, None))(X), 2 * X + 10)
    nested = phalanx.vmap(lambda x: phalanx.vmap(lambda y: scaled(y, ONE, "sequential"))(x))
    np.testing.assert_array_equal(nested(X[None]), 2 * X[None] + 10)


@pytest.mark.spmd
def test_in_shards(library):
    mesh = phalanx.make_mesh((phalanx.device_count(),), ("a",))
    rows = phalanx.P("a")
    xs = np.arange(2 * phalanx.device_count(), dtype=np.float32)
    mapped = phalanx.shard_map(lambda x: scaled(x, ONE), mesh=mesh, in_specs=rows, out_specs=rows)
    np.testing.assert_array_equal(phalanx.jit(mapped)(xs), 2 * xs + 10)


# ---- effects --------------------------------------------------------------------------------


def test_effects_happen_although_nobody_needs_the_results(library):
    def ignoring(has_side_effect):
        return phalanx.jit(lambda x: (counted(x, has_side_effect), x)[1])

    assert calls_of(library, lambda: ignoring(True)(X)) == 1
    assert calls_of(library, lambda: ignoring(False)(X)) == 0


def test_effects_happen_in_lanes_that_take_the_branch(library):
    def lane(x):
        return lax.cond(x[0] > 0, counted, lambda x: -x, x)

    assert calls_of(library, lambda: phalanx.vmap(lane)(X)) == 1
    np.testing.assert_array_equal(phalanx.vmap(lane)(X), np.stack([-X[0], X[1]]))

    def steps(n):
        return lax.fori_loop(0, n, lambda i, x: counted(x), X[0])

    assert calls_of(library, lambda: phalanx.vmap(steps)(np.int32([1, 3, 2]))) == 6


@pytest.mark.spmd
def test_effects_happen_once_for_each_lane(library):
    xs = np.ones((5, 3), np.float32)
    assert calls_of(library, lambda: phalanx.pmap(counted)(xs)) == 5


# ---- derivatives, and what is refused -------------------------------------------------------


def test_derivatives(library):
    with pytest.raises(ValueError, match=r"ffi_call\(phalanx_test_scaled\): a foreign.*custom_vjp"):
        phalanx.grad(lambda x: scaled(x, ONE).sum())(X)

    @phalanx.custom_vjp
    def double(x):
        return scaled(x, ONE)

    double.defvjp(lambda x: (double(x), None), lambda _, ct: (scaled(ct, 0 * ONE),))
    np.testing.assert_array_equal(phalanx.grad(lambda x: double(x).sum())(X), np.full_like(X, 2))


def test_failures_are_told(library):
    with pytest.raises(phalanx.errors.RuntimeFailure, match="it never works"):
        phalanx.jit(ffi.ffi_call("phalanx_test_fails", struct(2)))()
    unknown = "no function 'phalanx_nobody' is registered for CPUs"
    with pytest.raises(phalanx.errors.DeviceError, match=unknown):
        ffi.ffi_call("phalanx_nobody", struct(2))(X)


def test_what_is_exported_calls_it_where_that_is_said(library):
    function = phalanx.jit(lambda x: scaled(x, ONE))
    with pytest.raises(ValueError, match=r"scaled, called at test_ffi.py.*custom_call\('phalanx_t"):
        phalanx.export.export(function)(X)
    check = phalanx.export.DisabledSafetyCheck.custom_call("phalanx_test_scaled")
    made = phalanx.export.export(function, disabled_checks=[check])(X)
    again = phalanx.export.deserialize(made.serialize())
    np.testing.assert_array_equal(again.call(X), 2 * X + 10)


@pytest.mark.parametrize("options, error", [
    ({"vmap_method": "at random"}, "vmap_method must be None or one of sequential"),
    ({"legacy_backend_config": "x"}, "for custom_call_api_version below 4"),
    ({"output_layouts": (0, 0)}, r"output_layouts name each dimension once.*f32\[2,3\]"),
    ({"input_layouts": [None, None]}, "must have an entry for each of 1 arrays, got 2"),
    ({"input_output_aliases": {0: 1}}, "of 1 arguments and 1 results these are no two"),
])  # fmt: skip
def test_wrong_options(options, error):
    with pytest.raises(ValueError, match=error):
        ffi.ffi_call("phalanx_nobody", struct(2, 3), **options)(X)


def test_wrong_arguments():
    with pytest.raises(TypeError, match="such as ShapeDtypeStruct"):
        ffi.ffi_call("phalanx_nobody", 3)
    with pytest.raises(TypeError, match="'text'"):
        ffi.ffi_call("phalanx_nobody", struct(2))("text")
    with pytest.raises(TypeError, match="must be a PyCapsule"):
        ffi.register_ffi_target("phalanx_nobody", lambda x: x)
    with pytest.raises(TypeError, match="'type_id'"):
        ffi.register_ffi_type("phalanx_nobody", 3)
    with pytest.raises(ValueError, match="register_ffi_type"):
        ffi.register_ffi_type_id("phalanx_nobody", None)
    with pytest.raises(phalanx.errors.MissingRule, match="ffi_call"):
        ffi.ffi_lowering("phalanx_nobody")


def test_another_function_of_that_name_is_refused(library):
    other = ffi.pycapsule(library.count)
    ffi.register_ffi_target("phalanx_test_count", other)
    with pytest.raises(ValueError, match="XLA refuses it"):
        ffi.register_ffi_target("phalanx_test_scaled", other)


# ---- LAPACK ---------------------------------------------------------------------------------


@pytest.mark.parametrize("mapping", [lambda f: f, phalanx.vmap, phalanx.pmap])
def test_lapack_that_jaxlib_brings(mapping):
    def factor(a):
        call = ffi.ffi_call(
            "lapack_spotrf_ffi",
            (phalanx.ShapeDtypeStruct(a.shape, a.dtype), phalanx.ShapeDtypeStruct((), "int32")),
            vmap_method="broadcast_all",
            input_layouts=[(1, 0)],
            output_layouts=[(1, 0), None],
            input_output_aliases={0: 0},
        )
        return jnp.tril(call(a, uplo=np.uint8(ord("L")))[0])

    matrices = np.stack([np.eye(3) * n + 0.5 for n in (1, 2, 3)]).astype(np.float32)
    given = matrices if mapping in (phalanx.vmap, phalanx.pmap) else matrices[0]
    np.testing.assert_allclose(mapping(factor)(given), np.linalg.cholesky(given), rtol=1e-5)
