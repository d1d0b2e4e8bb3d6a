"""The array API standard, version 2025.12: what ``phalanx.numpy`` has of it, and what it means.

Signatures and special cases are the standard's own. Values at special cases are NumPy's, which
follows C: the standard asks for the same, and leaves open what is listed as open.
"""

import inspect
import math

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp

INSPECTION = jnp.__array_namespace_info__


def words(text):
    return text.split()


# ---- names and parameters: what stands before / is given by position, after * by keyword --------

ONE = words("""
    abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag
    isfinite isinf isnan log log10 log1p log2 logical_not negative positive real reciprocal
    round sign signbit sin sinh sqrt square tan tanh trunc matrix_transpose nonzero unique_all
    unique_counts unique_inverse unique_values linalg.det linalg.eigh linalg.eigvalsh linalg.inv
    linalg.matrix_transpose linalg.slogdet linalg.svdvals finfo iinfo
""")
TWO = words("""
    add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign
    divide equal floor_divide greater greater_equal hypot less less_equal logaddexp logical_and
    logical_or logical_xor matmul maximum minimum multiply nextafter not_equal pow remainder
    subtract linalg.matmul linalg.outer linalg.solve
""")
TRANSFORMS = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
FURTHER = """
all(x, /, *, axis, keepdims) any(x, /, *, axis, keepdims) max(x, /, *, axis, keepdims)
min(x, /, *, axis, keepdims) mean(x, /, *, axis, keepdims) sum(x, /, *, axis, dtype, keepdims)
prod(x, /, *, axis, dtype, keepdims) std(x, /, *, axis, correction, keepdims)
var(x, /, *, axis, correction, keepdims) argmax(x, /, *, axis, keepdims)
argmin(x, /, *, axis, keepdims) count_nonzero(x, /, *, axis, keepdims)
cumulative_prod(x, /, *, axis, dtype, include_initial)
cumulative_sum(x, /, *, axis, dtype, include_initial)
argsort(x, /, *, axis, descending, stable) sort(x, /, *, axis, descending, stable)
arange(start, /, stop, step, *, dtype, device) asarray(obj, /, *, dtype, device, copy)
empty(shape, *, dtype, device) ones(shape, *, dtype, device) zeros(shape, *, dtype, device)
full(shape, fill_value, *, dtype, device) empty_like(x, /, *, dtype, device)
ones_like(x, /, *, dtype, device) zeros_like(x, /, *, dtype, device)
full_like(x, /, fill_value, *, dtype, device) eye(n_rows, n_cols, /, *, k, dtype, device)
from_dlpack(x, /, *, device, copy) linspace(start, stop, /, num, *, dtype, device, endpoint)
tril(x, /, *, k) triu(x, /, *, k) astype(x, dtype, /, *, copy, device) broadcast_to(x, /, shape)
can_cast(from_, to, /) isdtype(dtype, kind) clip(x, /, min, max) concat(arrays, /, *, axis)
stack(arrays, /, *, axis) diff(x, /, *, axis, n, prepend, append) expand_dims(x, /, axis)
flip(x, /, *, axis) isin(x1, x2, /, *, invert) moveaxis(x, source, destination, /)
permute_dims(x, /, axes) repeat(x, repeats, /, *, axis) reshape(x, /, shape, *, copy)
roll(x, /, shift, *, axis) searchsorted(x1, x2, /, *, side, sorter) squeeze(x, /, axis)
take(x, indices, /, *, axis) take_along_axis(x, indices, /, *, axis)
tensordot(x1, x2, /, *, axes) tile(x, repetitions, /) unstack(x, /, *, axis)
vecdot(x1, x2, /, *, axis) where(condition, x1, x2, /)
linalg.cholesky(x, /, *, upper) linalg.cross(x1, x2, /, *, axis) linalg.diagonal(x, /, *, offset)
linalg.matrix_norm(x, /, *, keepdims, ord) linalg.matrix_power(x, n, /)
linalg.matrix_rank(x, /, *, rtol) linalg.pinv(x, /, *, rtol) linalg.qr(x, /, *, mode)
linalg.svd(x, /, *, full_matrices) linalg.tensordot(x1, x2, /, *, axes)
linalg.trace(x, /, *, offset, dtype) linalg.vecdot(x1, x2, /, *, axis)
linalg.vector_norm(x, /, *, axis, keepdims, ord) fft.fftfreq(n, /, *, d, dtype, device)
fft.rfftfreq(n, /, *, d, dtype, device) fft.fftshift(x, /, *, axes) fft.ifftshift(x, /, *, axes)
"""
SIGNATURES = {
    **dict.fromkeys(ONE, "x, /"),
    **dict.fromkeys(TWO, "x1, x2, /"),
    **{f"fft.{name}": "x, /, *, n, axis, norm" for name in TRANSFORMS},
    **{f"fft.{n}": "x, /, *, s, axes, norm" for n in ("fftn", "ifftn", "rfftn", "irfftn")},
    **dict(entry.split("(") for entry in " ".join(FURTHER.split()).rstrip(")").split(") ")),
}
OTHERS = words("""
    broadcast_arrays broadcast_shapes meshgrid result_type e inf nan newaxis pi bool int8 int16
    int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128
""")


def named(name):
    module, _, own = name.rpartition(".")
    return getattr(getattr(jnp, module) if module else jnp, own)


@pytest.mark.parametrize("name", SIGNATURES)
def test_parameters(name):
    """Positions of the standard are positions here, and its keywords are keywords here."""
    before, _, by_keyword = SIGNATURES[name].partition("*, ")
    only, _, either = before.partition("/") if "/" in before else ("", "", before)
    only, either, keywords = ([p for p in part.replace(" ", "").split(",") if p]
                              for part in (only, either, by_keyword))  # fmt: skip
    arguments = dict.fromkeys([*either, *keywords], 0)
    signature = inspect.signature(named(name))
    bound = signature.bind(*only, **arguments)
    again = signature.bind(*only, *either, **dict.fromkeys(keywords, 0))
    assert len(bound.args) + len(bound.kwargs) == len(again.args) + len(again.kwargs)


def test_all_names_are_there():
    assert [name for name in OTHERS if not hasattr(jnp, name)] == []
    methods = words("T mT device dtype ndim shape size to_device __array_namespace__ __dlpack__")
    assert [name for name in methods if not hasattr(jnp.ones((2, 2)), name)] == []


# ---- inspection ---------------------------------------------------------------------------------


@pytest.mark.parametrize("wide", [False, True])
def test_a_module_tells_its_dtypes(wide):
    info = INSPECTION()
    with phalanx.enable_x64(wide):
        defaults, every = info.default_dtypes(), info.dtypes()
        assert defaults["real floating"] == jnp.asarray(1.0).dtype
        assert defaults["complex floating"] == jnp.asarray(1j).dtype
        assert defaults["integral"] == jnp.asarray(1).dtype
        assert defaults["indexing"] == jnp.argmax(jnp.ones(2)).dtype
        assert all(jnp.zeros(1, dtype).dtype == dtype for dtype in every.values())
        assert len(every) == (13 if wide else 9)
        kinds = ("bool", "integral", "real floating", "complex floating")
        parts = [info.dtypes(kind=kind) for kind in kinds]
        assert {name: t for part in parts for name, t in part.items()} == every
        assert info.dtypes(kind=kinds) == every == info.dtypes(device=info.default_device())
    with pytest.raises(ValueError, match=r"'integral'.*got 'inegral'"):
        info.dtypes(kind="inegral")


def test_a_module_tells_its_devices_and_abilities():
    info = INSPECTION()
    assert info.default_device() in info.devices()
    assert set(phalanx.local_devices()) < set(info.devices())
    assert all(jnp.ones(1, device=device).shape == (1,) for device in info.devices())
    limit = info.capabilities()["max dimensions"]
    assert jnp.ones((1,) * limit).ndim == limit
    assert info.capabilities()["boolean indexing"] is False


def test_versions_of_the_standard():
    x = jnp.ones(2)
    for version in (None, "2021.12", "2024.12", jnp.__array_api_version__):
        assert x.__array_namespace__(api_version=version) is jnp
    with pytest.raises(ValueError, match=r"api_version must be one of .*'2024.12'.*got '1.0'"):
        x.__array_namespace__(api_version="1.0")


# ---- devices, and arrays for other libraries ----------------------------------------------------


def test_several_arrays_come_in_tuples():
    x = jnp.arange(3.0)
    assert type(jnp.meshgrid(x, x)) is type(jnp.broadcast_arrays(x, 1.0)) is tuple
    assert jnp.meshgrid() == jnp.broadcast_arrays() == ()


@pytest.mark.parametrize("device", ["cpu", 3])
def test_devices_are_objects(device):
    for placed in (jnp.ones(2).to_device, lambda d: jnp.zeros(2, device=d)):
        with pytest.raises(TypeError, match=r"device: one of phalanx.devices\(\).*test_array_api"):
            placed(device)


def test_capsules():
    x = jnp.arange(3.0)
    assert np.from_dlpack(x).tolist() == [0, 1, 2]
    shared, copied = (np.from_dlpack(x, copy=copy) for copy in (False, True))
    assert shared.ctypes.data == x.unsafe_buffer_pointer() != copied.ctypes.data
    assert copied.tolist() == [0, 1, 2]
    assert "dltensor" in repr(x.__dlpack__(max_version=(1, 0), dl_device=(1, 0), copy=None))
    with pytest.raises(BufferError, match=r"exported to \(2, 0\).*device_put"):
        x.__dlpack__(dl_device=(2, 0))


def test_memory_of_others_is_shared_if_asked_for_and_can_be():
    x = jnp.ones(2)
    assert jnp.from_dlpack(x, copy=False) is x
    assert jnp.from_dlpack(x, copy=True).unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
    memory = np.zeros(8 * 64, np.uint8)
    theirs = memory[-memory.ctypes.data % 64 :][: 4 * 64].view(np.float32)  # aligned
    shared, own = (jnp.from_dlpack(theirs, copy=copy) for copy in (False, None))
    assert shared.unsafe_buffer_pointer() == theirs.ctypes.data != own.unsafe_buffer_pointer()
    with pytest.raises(BufferError, match="from_dlpack"):
        jnp.from_dlpack(np.ones((4, 4))[:, ::2], copy=False)


@pytest.mark.parametrize("astype", [jnp.astype, lambda x, *args, **kw: x.astype(*args, **kw)])
def test_a_copy_in_the_same_dtype_has_memory_of_its_own(astype):
    x = jnp.ones(2)
    assert astype(x, x.dtype) is x
    copied = astype(x, x.dtype, copy=True)
    x.delete()
    assert copied.tolist() == [1, 1]


# ---- dimensions and positions -------------------------------------------------------------------


@pytest.mark.parametrize("error", [IndexError, ValueError, phalanx.errors.AxisError])
def test_a_dimension_that_is_not_there(error):
    for dim in (3, -4):
        with pytest.raises(error, match=f"dimension {dim} is out of bounds"):
            jnp.expand_dims(jnp.ones((2, 2)), axis=dim)


@pytest.mark.parametrize("wide", [False, True])
def test_positions_are_all_of_one_dtype(wide):
    with phalanx.enable_x64(wide):
        x, index = jnp.array([1.0, 2.0, 3.0]), INSPECTION().default_dtypes()["indexing"]
        found = [
            jnp.argmax(x), jnp.argmin(x), jnp.argsort(x), jnp.count_nonzero(x), *jnp.nonzero(x),
            jnp.searchsorted(x, x), jnp.searchsorted(x, 2.0), jnp.digitize(x, x),
            *jnp.unique_all(x)[1:], jnp.top_k(x, 2)[1],
        ]  # fmt: skip
        assert {y.dtype for y in found} == {index}


# ---- dtypes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", [None, {"name": "e"}, {}, (), 3, 1.5, object(), ["f4"], b"f4"])
def test_dtypes_compare_with_anything(other):
    for dtype in (jnp.float32, jnp.float64, jnp.bool, jnp.bfloat16):
        assert dtype != other and dtype not in (other,)


def test_dtypes_that_are_the_same():
    for other in (jnp.float32, np.float32, np.dtype("float32"), "float32", jnp.ones(2).dtype):
        assert jnp.float32 == other
    assert not jnp.isdtype(jnp.float64, jnp.float32)


# ---- special cases ------------------------------------------------------------------------------

REALS = (0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 0.5, -0.5, 2.0, -2.0, 3.0, -7.5)
PARTS = (0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 0.5, -3.0)
COMPLEX = [complex(x, y) for x in PARTS for y in PARTS]
OF_COMPLEX = words("""
    abs acos acosh asin asinh atan atanh conj cos cosh exp isfinite isinf isnan log log1p log2
    log10 negative sin sinh sqrt tan tanh
""")
OF_REALS = [name for name in ONE if name in OF_COMPLEX] + words("""
    ceil expm1 floor round square trunc
""")
OF_PAIRS = words("""
    add atan2 copysign divide equal floor_divide greater hypot less logaddexp multiply nextafter
    not_equal pow remainder subtract
""")


def same(ours, numpys):
    """Elementwise, with the signs of zeros and infinities, up to rounding."""
    ours, numpys = np.asarray(ours), np.asarray(numpys)
    if np.iscomplexobj(numpys):
        return same(ours.real, numpys.real) & same(ours.imag, numpys.imag)
    with np.errstate(all="ignore"):
        close = np.isclose(ours, numpys, 1e-5, 0, equal_nan=True)
        if numpys.dtype.kind != "f":
            return close
        return close & (np.isnan(numpys) | (np.signbit(ours) == np.signbit(numpys)))


@pytest.mark.parametrize("name", OF_REALS)
def test_special_cases_of_real_numbers(name):
    x = np.array(REALS, np.float32)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x)
    assert not x[~same(getattr(jnp, name)(x), expected)].tolist()


@pytest.mark.parametrize("name", OF_PAIRS)
def test_special_cases_of_pairs(name):
    x, y = (np.ravel(v).astype(np.float32) for v in np.meshgrid(REALS, REALS))
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x, y)
    differ = ~same(getattr(jnp, name)(x, y), expected)
    assert not list(zip(x[differ], y[differ], strict=True))


def test_remainders_by_constants_and_their_slopes():
    x = jnp.array([4.0, -4.0, 0.0, -0.0])
    assert np.signbit(x % -2.0).all() and not np.signbit(x % 2.0).any()
    assert np.signbit(x // 8.0).tolist() == [False, True, False, True]
    for by in (2.0, -2.0):
        slopes = phalanx.vmap(phalanx.grad(jnp.remainder, (0, 1)), (0, None))(x, by)
        assert slopes[0].tolist() == [1] * 4 and (slopes[1] == -x / by).all()


NAN, INF = math.nan, math.inf
OPEN = {
    "acos": lambda z: math.isinf(z.real) and math.isnan(z.imag),
    "acosh": lambda z: False,
    "asin": lambda z: math.isinf(z.real) and math.isnan(z.imag),
    "atan": lambda z: math.isinf(z.real) and math.isnan(z.imag),
    "cos": lambda z: not math.isfinite(z.real) and z.imag == 0,
    "cosh": lambda z: not math.isfinite(z.imag) and z.real == 0,
    "exp": lambda z: not math.isfinite(z.imag) and z.real == -INF,
    "sin": lambda z: not math.isfinite(z.real) and math.isinf(z.imag),
    "sinh": lambda z: not math.isfinite(z.imag) and math.isinf(z.real),
}
"""Where the standard leaves the sign of a part open."""


@pytest.mark.parametrize("name", OF_COMPLEX)
def test_special_cases_of_complex_numbers(name):
    z = np.array(COMPLEX, np.complex64)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(z)
    ours = np.asarray(getattr(jnp, name)(z))
    is_open = np.array([OPEN.get(name, lambda z: False)(v) for v in z.tolist()])
    sizes = [np.abs(v.view(np.float32)).view(v.dtype) for v in (ours, expected)] \
        if np.iscomplexobj(expected) else [ours, expected]  # fmt: skip
    right = np.where(is_open, same(*sizes), same(ours, expected))
    assert not [(z[i], ours[i], expected[i]) for i in np.flatnonzero(~right)]


EXPM1 = {  # the standard's list: NumPy gives NaN for some of these
    complex(INF, 0.0): complex(INF, 0.0),
    complex(-INF, 1.0): complex(-1.0, 0.0),
    complex(-INF, INF): complex(-1.0, 0.0),
    complex(-INF, NAN): complex(-1.0, 0.0),
    complex(INF, INF): complex(INF, NAN),
    complex(INF, NAN): complex(INF, NAN),
    complex(NAN, 0.0): complex(NAN, 0.0),
    complex(NAN, 1.0): complex(NAN, NAN),
    complex(0.0, INF): complex(NAN, NAN),
}


def test_special_cases_of_expm1():
    assert same(jnp.expm1(np.array([*EXPM1])), np.array([*EXPM1.values()])).all()
