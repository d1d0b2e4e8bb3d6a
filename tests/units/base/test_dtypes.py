"""Dtypes: names, kinds, canonical forms, and promotion against tables and against jax."""

import enum
import itertools
import warnings

import ml_dtypes
import numpy as np
import pytest

import phalanx.numpy
from phalanx.base import dtypes, lattice
from phalanx.base.config import config
from phalanx.base.errors import TypePromotionError

NUMBERS = sorted(dtypes.ALL - {dtypes.float0}, key=str)
SCALARS = [True, 1, 1.0, 1j]
KINDS = [bool, int, float, complex]
ABSTRACT = [
    np.generic,
    np.number,
    np.integer,
    np.signedinteger,
    np.unsignedinteger,
    np.inexact,
    np.floating,
    np.complexfloating,
]


@pytest.fixture(params=[False, True], ids=["x32", "x64"])
def x64(request):
    with config.override(enable_x64=request.param):
        yield request.param


@pytest.fixture
def jnp(x64):
    """The numpy of jax, in the same mode: an oracle."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jax = pytest.importorskip("jax")
        before = jax.config.jax_enable_x64
        jax.config.update("jax_enable_x64", x64)
        yield jax.numpy
        jax.config.update("jax_enable_x64", before)


def outcome(f, *args):
    """A dtype, or None where there is an error."""
    try:
        return np.dtype(f(*args))
    except (TypeError, ValueError):
        return None


# ---- promotion ------------------------------------------------------------------------------


def differences(ours, theirs, values):
    pairs = itertools.product(values, repeat=2)
    return [
        (a, b, got, wanted)
        for a, b in pairs
        if (got := outcome(ours, a, b)) != (wanted := outcome(theirs, a, b))
    ]


def test_promote_types_is_that_of_jax(jnp):
    assert not differences(lattice.promote_types, jnp.promote_types, NUMBERS + KINDS)


def test_result_type_is_that_of_jax(jnp):
    values = NUMBERS + KINDS + SCALARS
    assert not differences(lattice.result_type, jnp.result_type, values)


def test_none_is_the_default_floating_point_dtype_to_result_type(jnp):
    values = [None, int, float, bool, complex, 1, "int8", "float16", "complex64"]
    assert not differences(lattice.result_type, jnp.result_type, values)
    assert lattice.result_type(None) == dtypes.canonical(np.result_type(None))


def test_result_type_of_three_is_that_of_jax(jnp):
    few = [np.dtype(t) for t in ("bool", "uint8", "int16", "float16", "float32")]
    few += [np.dtype(ml_dtypes.bfloat16), 1, 1.0, 1j]
    for triple in itertools.product(few, repeat=3):
        assert outcome(lattice.result_type, *triple) == outcome(jnp.result_type, *triple), triple


def test_issubdtype_is_that_of_jax(jnp):
    for a, b in itertools.product(NUMBERS + KINDS + ABSTRACT, repeat=2):
        assert dtypes.issubdtype(a, b) == jnp.issubdtype(a, b), (a, b)


TABLE = [  # operands and result, in the short names of printed types; a star is weak
    ("f32* f8e4m3fn", "f8e4m3fn"), ("b1 i4", "i4"), ("f16* f32*", "f32*"),
]  # fmt: skip


@pytest.mark.parametrize(("operands", "result"), TABLE)
def test_promotion_table(operands, result):
    named = {dtypes.short_name(t): t for t in NUMBERS}
    pairs = [(named[name.rstrip("*")], name.endswith("*")) for name in operands.split()]
    for order in itertools.permutations(pairs):
        dtype, weak = lattice.promote(*order)
        assert dtypes.short_name(dtype) + "*" * weak == result


def test_promotion_is_a_join(x64):
    """Commutative, idempotent, and associative wherever it is defined."""
    strong = [(t, False) for t in NUMBERS if dtypes.canonical(t) == t]

    def join(a, b):
        try:
            return lattice.promote(a, b)
        except TypePromotionError:
            return None

    for a, b in itertools.product(strong, repeat=2):
        assert join(a, b) == join(b, a)
    assert all(join(a, a) == a for a in strong)


@pytest.mark.parametrize(
    ("a", "b"),
    [("float8_e4m3fn", "float8_e5m2"), ("float8_e5m2", "float32"), ("int4", "int8")],
)
def test_dtypes_without_a_join_are_named(a, b):
    with pytest.raises(TypePromotionError, match="convert one of the operands") as caught:
        lattice.result_type(a, b)
    assert a in str(caught.value) and b in str(caught.value)


def test_float0_combines_with_itself_only():
    assert lattice.promote((dtypes.float0, False), (dtypes.float0, False)) == (dtypes.float0, False)
    with pytest.raises(TypePromotionError):
        lattice.result_type(dtypes.float0, np.dtype("float32"))


def test_result_type_takes_arrays_scalars_and_things_with_a_weak_type(x64):
    class Weak:
        dtype, weak_type = np.dtype("float32"), True

    assert lattice.result_type(np.zeros(3, np.float16), Weak()) == np.float16
    assert lattice.result_type(np.float16(1), 2.5) == np.float16
    assert lattice.result_type(np.float64(1), np.float32(1)) == (np.float64 if x64 else np.float32)
    assert lattice.result_type(np.int8, "uint8") == np.int16
    with pytest.raises(TypeError, match="at least one"):
        lattice.result_type()


# ---- canonical dtypes -----------------------------------------------------------------------


def test_canonical_narrows_64_bits_unless_they_are_enabled(x64):
    for wide, narrow in dtypes._TO_32_BIT.items():
        assert dtypes.canonical(wide) == (wide if x64 else narrow)
        assert dtypes.canonical(narrow) == narrow
    assert dtypes.canonical(float) == dtypes.default_float() == dtypes.weak_dtype(float)
    assert dtypes.canonical(int) == dtypes.default_int() == dtypes.weak_dtype(int)
    assert dtypes.canonical(complex) == dtypes.default_complex() == dtypes.weak_dtype(complex)
    assert dtypes.canonical(bool) == dtypes.weak_dtype(bool) == np.bool_
    assert dtypes.default_uint() == (np.uint64 if x64 else np.uint32)


@pytest.mark.parametrize(
    ("like", "name"),
    [
        ("bfloat16", "bf16"),
        (ml_dtypes.bfloat16, "bf16"),
        (np.float16, "f16"),
        (">i4", "i32"),
        (np.dtype(">f4"), "f32"),
        (phalanx.numpy.int8, "i8"),
        ("float8_e4m3fn", "f8e4m3fn"),
        (dtypes.float0, "float0"),
    ],
)
def test_whatever_means_a_dtype(like, name):
    found = dtypes.canonical(like)
    assert isinstance(found, np.dtype) and found.isnative and dtypes.short_name(found) == name


@pytest.mark.parametrize(
    ("like", "message"),
    [
        (None, "a dtype is needed, got None"),
        (object, "dtype object are not supported"),
        ("U3", "are not supported"),
        ("datetime64[s]", "are not supported"),
        ("flaot32", "'flaot32' is not a dtype. Did you mean 'float32'?"),
        ("what", "'what' is not a dtype"),
        ([1.0], "is not a dtype"),
    ],
)
def test_what_means_no_dtype(like, message):
    with pytest.raises(TypeError) as caught:
        dtypes.canonical(like)
    assert message in str(caught.value)


class Colour(enum.IntEnum):
    RED = 1


@pytest.mark.parametrize(
    ("x", "name", "weak"),
    [
        (True, "b1", False),
        (3, "i32", True),
        (Colour.RED, "i32", True),
        (3.0, "f32", True),
        (3j, "c64", True),
        (np.float64(3), "f32", False),
        (np.bool_(True), "b1", False),
        (np.zeros(2, np.int64), "i32", False),
        (np.zeros((), ml_dtypes.bfloat16), "bf16", False),
        (float, "f32", False),
        (np.int16, "i16", False),
        (phalanx.numpy.uint8, "u8", False),
    ],
)
def test_dtype_of(x, name, weak):
    assert dtypes.short_name(dtypes.dtype_of(x)) == name
    assert dtypes.is_weak(x) is weak


def test_weak_dtype_of_no_number():
    with pytest.raises(TypeError, match="str is not a type of Python numbers"):
        dtypes.weak_dtype(str)


def test_changes_of_kind(x64):
    assert all(dtypes.to_inexact(t) == np.float32 for t in ("bool", "int4", "int8", "uint32"))
    assert dtypes.to_inexact("int64") == dtypes.to_inexact("uint64") == dtypes.default_float()
    assert dtypes.to_inexact("bfloat16") == ml_dtypes.bfloat16
    assert dtypes.to_real("complex64") == np.float32
    assert dtypes.to_real("complex128") == (np.float64 if x64 else np.float32)
    assert dtypes.to_real("int8") == np.int8
    assert dtypes.to_complex("float16") == dtypes.to_complex("complex64") == np.complex64
    assert dtypes.to_complex("float64") == (np.complex128 if x64 else np.complex64)


# ---- kinds, names, limits -------------------------------------------------------------------


def test_every_dtype_is_of_one_kind_and_has_a_name_of_its_own():
    kinds = (dtypes.is_bool, dtypes.is_integer, dtypes.is_floating, dtypes.is_complex)
    for dtype in NUMBERS:
        assert sum(kind(dtype) for kind in kinds) == 1
        assert dtypes.is_inexact(dtype) == (dtypes.is_floating(dtype) or dtypes.is_complex(dtype))
        assert dtypes.is_integer(dtype) == (dtypes.is_signed(dtype) + dtypes.is_unsigned(dtype))
        assert dtypes.is_signed(dtype) == dtypes.issubdtype(dtype, np.signedinteger)
        assert dtypes.is_unsigned(dtype) == dtypes.issubdtype(dtype, np.unsignedinteger)
    assert not any(kind(dtypes.float0) for kind in kinds)
    assert len({dtypes.short_name(t) for t in dtypes.ALL}) == len(dtypes.ALL)


@pytest.mark.parametrize("dtype", NUMBERS, ids=dtypes.short_name)
def test_limits(dtype):
    if dtypes.is_integer(dtype):
        assert dtypes.iinfo(dtype).max > 0
    elif dtypes.is_inexact(dtype):
        assert float(dtypes.finfo(dtype).max) > 0
    with pytest.raises(ValueError, match="dtype is needed"):
        (dtypes.finfo if not dtypes.is_inexact(dtype) else dtypes.iinfo)(dtype)


@pytest.mark.parametrize("dtype", sorted(dtypes.INTEGERS, key=str), ids=dtypes.short_name)
def test_integers_must_fit(dtype):
    info = dtypes.iinfo(dtype)
    for value in (int(info.min), int(info.max)):
        assert int(dtypes.scalar(value, dtype)) == value
    for value in (int(info.min) - 1, int(info.max) + 1):
        with pytest.raises(OverflowError, match=rf"add: Python int {value} does not fit {dtype}"):
            dtypes.check_range(value, dtype, "add")


def test_the_advice_where_an_integer_does_not_fit():
    with pytest.raises(OverflowError, match="set enable_x64"):
        dtypes.check_range(2**31, np.dtype("int32"))
    with pytest.raises(OverflowError, match="use a wider dtype"):
        dtypes.check_range(2**7, np.dtype("int8"))
    dtypes.check_range(10**30, np.dtype("float32"))


@pytest.mark.parametrize("dtype", NUMBERS, ids=dtypes.short_name)
def test_scalars_of_every_dtype(dtype):
    for value in (1, 1.0, np.int64(1), np.float32(1)):
        made = dtypes.scalar(value, dtype)
        assert made.dtype == dtype and made.shape == () and made == 1
        assert isinstance(made, np.generic)
