"""Reading and writing parts of arrays against NumPy, on drawn indices."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import errors

SHAPES = [(5,), (4, 3), (3, 4, 5)]


def draw_slice(rng, n):
    low, high = sorted(rng.integers(-n - 1, n + 2, 2).tolist())
    return [
        slice(None),
        slice(low, high),
        slice(None, None, 2),
        slice(None, None, -1),
        slice(n - 1, None, -2),
        slice(int(rng.integers(0, n)), None),
    ][rng.integers(6)]


def draw(rng, shape, advanced):
    """An index into an array of ``shape``, made of NumPy's parts."""
    index, dims = [], list(shape)
    batch = [(2,), (3,), (2, 3), (1, 3)][rng.integers(4)]
    while dims and (rng.random() < 0.9 or not index):
        n, kind = dims[0], rng.random()
        if advanced and kind < 0.4:
            if rng.random() < 0.2 and len(dims) > 1:
                mask = rng.random(dims[:2]) < 0.5
                if not any(isinstance(i, np.ndarray) for i in index):
                    index.append(mask)
                    dims = dims[2:]
                    return tuple(index)
            size = batch if rng.random() < 0.7 else batch[-1:]
            index.append(rng.integers(-n, n, size))
        elif kind < 0.6:
            index.append(int(rng.integers(-n, n)))
        elif kind < 0.7:
            index.append(None)
            continue
        else:
            index.append(draw_slice(rng, n))
        dims = dims[1:]
    if rng.random() < 0.3:
        index.insert(len(index), Ellipsis)
    return tuple(index)


def ours(index):
    """The same index with arrays of ours in the place of NumPy's integers."""
    return tuple(
        jnp.array(i) if isinstance(i, np.ndarray) and i.dtype.kind != "b" else i for i in index
    )


def data(shape):
    return np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)


@pytest.mark.parametrize("seed", range(40))
def test_drawn_indices(seed):
    rng = np.random.default_rng(seed)
    shape = SHAPES[seed % 3]
    x, index = data(shape), draw(rng, shape, advanced=seed % 2)
    expected = x[index]
    mine = ours(index)
    np.testing.assert_array_equal(jnp.array(x)[mine], expected, err_msg=str(index))
    np.testing.assert_array_equal(jnp.array(x)[index], expected, err_msg=str(index))

    values = rng.normal(size=expected.shape).astype(np.float32)
    added = x.copy()
    np.add.at(added, index, values)
    np.testing.assert_allclose(jnp.array(x).at[mine].add(values), added, rtol=1e-6)

    written = x.copy()
    written[index] = -1
    np.testing.assert_array_equal(jnp.array(x).at[mine].set(-1), written)


@pytest.mark.parametrize("seed", range(8))
def test_drawn_indices_under_transformations(seed):
    rng = np.random.default_rng(100 + seed)
    shape = SHAPES[seed % 3]
    x, index = data(shape), ours(draw(rng, shape, advanced=seed % 2))
    weights = rng.normal(size=jnp.array(x)[index].shape).astype(np.float32)

    @phalanx.jit
    def slope(x):
        return phalanx.grad(lambda x: (x[index] * weights).sum())(x)

    expected = jnp.zeros(shape).at[index].add(weights)
    np.testing.assert_allclose(slope(x), expected, rtol=1e-5)
    lanes = np.stack([x, 2 * x, -x])
    found = phalanx.vmap(lambda x: x.at[index].multiply(weights))(lanes)
    for lane, one in zip(found, lanes, strict=True):
        np.testing.assert_allclose(lane, jnp.array(one).at[index].multiply(weights), rtol=1e-5)


def test_traced_integers():
    x = data((3, 4, 5))

    @phalanx.jit
    def parts(x, i, j):
        return x[i], x[:, j], x[i, :, j], x[i, 1:3], x[..., j], x[None, i], x.at[i, j].set(0)

    for i, j in ((0, 1), (2, -1), (-3, 3)):
        found = parts(x, i, j)
        zero = x.copy()
        zero[i, j] = 0
        expected = (x[i], x[:, j], x[i, :, j], x[i, 1:3], x[..., j], x[None, i], zero)
        for f, e in zip(found, expected, strict=True):
            np.testing.assert_array_equal(f, e)


def test_traced_integers_differ_between_lanes():
    x, i = data((3, 4)), np.array([2, 0, 1], np.int32)
    found = phalanx.vmap(lambda row, i: (row[i], row.at[i].add(10.0)))(x, i)
    np.testing.assert_array_equal(found[0], x[np.arange(3), i])
    added = x.copy()
    added[np.arange(3), i] += 10
    np.testing.assert_array_equal(found[1], added)


def test_reading_outside():
    x = jnp.arange(3.0)
    assert x[10] == 2.0
    assert x[-10] == 0.0
    assert x[jnp.array([10, -10, -1])].tolist() == [2.0, 0.0, 2.0]
    assert x.at[jnp.array([10, 1])].get(mode="fill", fill_value=7).tolist() == [7.0, 1.0]
    assert np.isnan(x.at[10].get(mode="fill"))
    assert x.at[jnp.array([10, -10])].get(mode="clip").tolist() == [2.0, 0.0]
    assert phalanx.jit(lambda i: x[i])(10) == 2.0
    assert np.isnan(phalanx.jit(lambda i: x.at[i].get(mode="fill"))(10))


def test_unsigned_positions_beyond_what_has_a_sign():
    x = jnp.arange(6.0)
    far = jnp.array([2**32 - 1, 2**31, 7, 2], "uint32")
    assert x[jnp.uint32(2**31)] == 5 and phalanx.jit(lambda x, i: x[i])(x, far[1]) == 5
    np.testing.assert_array_equal(x[far], [5, 5, 5, 2])
    np.testing.assert_array_equal(x[None][0, far], [5, 5, 5, 2])
    np.testing.assert_array_equal(x.at[far].get(mode="fill"), [np.nan] * 3 + [2])
    np.testing.assert_array_equal(x.at[far].set(9), [0, 1, 9, 3, 4, 5])


def test_writing_outside():
    x = jnp.arange(3.0)
    for index in (10, -10, jnp.array([10, -10])):
        assert x.at[index].set(5.0).tolist() == [0.0, 1.0, 2.0]
        assert x.at[index].add(5.0, mode="drop").tolist() == [0.0, 1.0, 2.0]
    assert x.at[10].set(5.0, mode="clip").tolist() == [0.0, 1.0, 5.0]
    assert phalanx.jit(lambda i: x.at[i].add(5.0))(10).tolist() == [0.0, 1.0, 2.0]
    assert phalanx.jit(lambda i: x.at[i].set(5.0, mode="clip"))(10).tolist() == [0.0, 1.0, 5.0]


FITTING = [
    ("int32", 2),
    ("int32", True),
    ("int32", np.int8(2)),
    ("float32", 2.5),
    ("float32", np.int32(2)),
    ("bfloat16", 2.5),
    ("complex64", np.float32(2.5)),
]
LOSSY = [
    ("int32", 2.5),
    ("int32", np.float32(2.5)),
    ("int8", np.int32(2)),
    ("bfloat16", np.float32(2.5)),
    ("float32", 2.5j),
    ("float8_e5m2", jnp.float8_e4m3fn(2)),
    ("bool", 2),
]


@pytest.mark.parametrize("form", [lambda v: v, jnp.asarray], ids=["as it is", "array"])
def test_values_that_the_dtype_cannot_hold_are_told(form):
    for dtype, value in FITTING:
        jnp.ones(3, dtype).at[1].set(form(value))
    for dtype, value in LOSSY:
        with pytest.warns(FutureWarning, match=f"cannot safely cast values of .* to {dtype}"):
            written = jnp.ones(3, dtype).at[1].set(form(value))
        expected = np.asarray(form(value)).real.astype(written.dtype)
        assert written.dtype == dtype
        assert written[1] == expected


def test_sequences_are_written_as_numpy_takes_them():
    x, rows = data((3, 4)), data((2, 4))
    expected = x.copy()
    expected[1:], expected[0, :2] = rows, [7, 8]
    found = jnp.asarray(x).at[1:].set([jnp.asarray(row) for row in rows]).at[0, :2].set((7, 8))
    np.testing.assert_array_equal(found, expected)


METHODS = {
    "set": lambda x, v: v,
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "power": np.power,
    "min": np.minimum,
    "max": np.maximum,
}


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize(
    "index",
    [1, (slice(None), 2), slice(None, None, 2), np.array([0, 2]), (np.array([0, 2]), slice(1, 3))],
    ids=str,
)
def test_methods_of_at(name, index):
    x = data((3, 4))
    expected = x.copy()
    expected[index] = METHODS[name](x[index], np.float32(2))
    mine = ours(index if isinstance(index, tuple) else (index,))
    np.testing.assert_allclose(getattr(jnp.array(x).at[mine], name)(2.0), expected, rtol=1e-5)


def test_methods_of_at_with_traced_integers():
    x = data((3, 4))
    for name, function in METHODS.items():
        expected = x.copy()
        expected[2] = function(x[2], np.float32(2))
        found = phalanx.jit(lambda x, i, name=name: getattr(x.at[i], name)(2.0))(x, 2)
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_positions_that_meet():
    x = jnp.array([1.0, 2.0, 3.0])
    twice = jnp.array([1, 1])
    assert x.at[twice].add(1.0).tolist() == [1.0, 4.0, 3.0]
    assert x.at[twice].multiply(3.0).tolist() == [1.0, 18.0, 3.0]
    assert x.at[twice].divide(2.0).tolist() == [1.0, 0.5, 3.0]
    assert x.at[twice].power(2.0).tolist() == [1.0, 16.0, 3.0]
    assert x.at[twice].max(jnp.array([5.0, 7.0])).tolist() == [1.0, 7.0, 3.0]


def test_masks():
    x = data((3, 4))
    mask, rows = x > 5, np.array([True, False, True])
    np.testing.assert_array_equal(jnp.array(x)[mask], x[mask])
    np.testing.assert_array_equal(jnp.array(x)[jnp.array(rows)], x[rows])
    np.testing.assert_array_equal(jnp.array(x)[:, jnp.array([True, False, True, False])], x[:, ::2])
    np.testing.assert_array_equal(jnp.array(x)[rows, 1], x[rows, 1])
    zeroed = np.where(mask, 0, x)
    np.testing.assert_array_equal(jnp.array(x).at[mask].set(0), zeroed)
    np.testing.assert_array_equal(phalanx.jit(lambda x: x.at[x > 5].set(0))(x), zeroed)
    np.testing.assert_array_equal(
        phalanx.jit(lambda x: x.at[x[:, 0] > 1].add(jnp.arange(4.0)))(x),
        np.where(x[:, :1] > 1, x + np.arange(4), x),
    )
    written = x.copy()
    written[mask] = np.arange(mask.sum())
    np.testing.assert_array_equal(jnp.array(x).at[mask].set(jnp.arange(mask.sum())), written)
    with pytest.raises(errors.NonConcreteBooleanIndexError, match=r"jnp.where\(mask, x, other\)"):
        phalanx.jit(lambda x: x[x > 5])(x)
    with pytest.raises(IndexError, match="mask of shape"):
        jnp.array(x)[np.ones(5, bool)]
    assert phalanx.grad(lambda v: (v[v > 5] ** 2).sum())(jnp.array(x))[2, 3] == 24.0


def test_boolean_scalars():
    x = data((3,))
    for index in (True, False, (None, True), (Ellipsis, np.bool_(True))):
        np.testing.assert_array_equal(jnp.array(x)[index], x[index])


def test_a_loop_over_rows_compiles_once():
    from phalanx.run.calls import calls

    x = jnp.array(data((7, 3)))
    _ = x[0], x[1:3], x[0, 1]
    before = len(calls)
    for i in range(1, 5):
        _ = x[i], x[i : i + 2], x[i, 2]
    assert len(calls) == before


ERRORS = {
    "float": (lambda x: x[1.0], TypeError, "made of integers"),
    "float array": (lambda x: x[jnp.array([1.0])], TypeError, r"got f32\[1\]"),
    "list": (lambda x: x[[0, 1]], TypeError, r"x\[jnp.array\(\[0, 1\]\)\]"),
    "text": (lambda x: x["a"], TypeError, "got 'a' of type str"),
    "too many": (lambda x: x[0, 0, 0], IndexError, "too many indices"),
    "two ellipses": (lambda x: x[..., ...], IndexError, "one ellipsis"),
    "traced slice": (
        lambda x: phalanx.jit(lambda i: x[i:])(1),
        IndexError,
        "lax.dynamic_slice",
    ),
    "values": (lambda x: x.at[0].set(jnp.ones(9)), ValueError, "for broadcasting"),
    "mode": (lambda x: x.at[0].set(1, mode="wrap"), ValueError, "mode must be one of"),
    "positions": (
        lambda x: x[jnp.array([0, 1]), jnp.array([0, 1, 2])],
        ValueError,
        "for broadcasting",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case):
    function, error, text = ERRORS[case]
    with pytest.raises(error, match=text):
        function(jnp.zeros((3, 4)))


def test_assignment_says_what_to_do():
    x = jnp.zeros(3)
    with pytest.raises(TypeError, match=r"x.at\[index\].set\(value\)"):
        x[0] = 1.0


def test_take():
    x, i = data((3, 4)), np.array([[2, 0], [1, 1]])
    np.testing.assert_array_equal(jnp.take(x, jnp.array(i), axis=1), np.take(x, i, axis=1))
    np.testing.assert_array_equal(jnp.take(x, jnp.array(i)), np.take(x, i))
    far = np.array([-9, 2, 9])
    for mode in ("clip", "wrap"):
        found = jnp.take(x, jnp.array(far), axis=0, mode=mode)
        np.testing.assert_array_equal(found, np.take(x, far, axis=0, mode=mode))
    assert np.isnan(jnp.take(x, 99))
    assert jnp.take(jnp.arange(3), 9, fill_value=-5) == -5


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_along_an_axis(axis):
    x = data((3, 4))
    i = np.argsort(-x, axis=axis)
    np.testing.assert_array_equal(
        jnp.take_along_axis(x, jnp.array(i), axis), np.take_along_axis(x, i, axis)
    )
    expected = x.copy()
    np.put_along_axis(expected, i, np.float32(5), axis)
    found = jnp.put_along_axis(x, jnp.array(i), 5.0, axis, inplace=False)
    np.testing.assert_array_equal(found, expected)


def test_put_and_its_kind():
    x = data((3, 4))
    expected = x.copy()
    np.put(expected, [0, 5, 7], [1, 2])
    found = jnp.put(x, jnp.array([0, 5, 7]), jnp.array([1, 2]), inplace=False)
    np.testing.assert_array_equal(found, expected)
    expected = x.copy()
    np.fill_diagonal(expected, 9)
    np.testing.assert_array_equal(jnp.fill_diagonal(jnp.array(x), 9, inplace=False), expected)
    np.testing.assert_array_equal(
        jnp.compress(jnp.array([True, False, True]), x, axis=0), x[[0, 2]]
    )
    with pytest.raises(ValueError, match="inplace=False"):
        jnp.put(x, jnp.array([0]), 1, inplace=True)


class ArrayOfAnotherLibrary:
    """One that says that it can be an integer, as those of any length do, but is several."""

    ndim = 1

    def __index__(self):
        raise TypeError("only scalars are integers")


def test_an_array_of_another_library_as_an_index_is_refused_in_our_words():
    with pytest.raises(TypeError, match=r"an index must be made of .*convert it with np\.asarray"):
        jnp.arange(3)[ArrayOfAnotherLibrary()]


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "int8", "int16", "int32", "bool"])
@pytest.mark.parametrize("into", ["float32", "int32", "complex64"])
def test_what_is_subtracted_has_the_dtype_of_the_array_before_its_sign_changes(dtype, into):
    kind = np.dtype(dtype)
    most = True if dtype == "bool" else min(np.iinfo(kind).max, 2**24)
    least = 0 if dtype == "bool" else np.iinfo(kind).min
    for value in (np.array(most, kind), np.array(max(least, -(2**24)), kind)):
        expected = np.array([3, 3 - int(value)], into)
        for values in (jnp.array(value), value[()], value):
            for index in (1, jnp.array([1])):
                out = jnp.array([3, 3], into).at[index].subtract(values)
                np.testing.assert_array_equal(out, expected)
                assert out.dtype == into
        np.testing.assert_array_equal(
            jnp.subtract.at(jnp.array([3, 3], into), jnp.array([1]), value, inplace=False), expected
        )


def test_a_number_is_subtracted_from_unsigned_integers():
    np.testing.assert_array_equal(jnp.arange(4, 8, dtype="uint8").at[0].subtract(3), [1, 5, 6, 7])
    np.testing.assert_array_equal(jnp.array([200, 9], "uint8").at[0].subtract(200), [0, 9])
    with pytest.raises(errors.DtypeError, match=r"at\[\].subtract: booleans have no difference"):
        jnp.array([True]).at[0].subtract(True)


@pytest.mark.filterwarnings("ignore:scatter inputs:FutureWarning")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64", "uint8", "int32"])
@pytest.mark.parametrize("how", ["set", "add", "subtract", "multiply", "divide", "power", "max"])
def test_an_array_keeps_its_dtype_whatever_is_written_in_it(how, dtype):
    x = jnp.array([9, 4], dtype)
    divided = how == "divide" and dtype in ("uint8", "int32")  # as of integers everywhere
    for value in (2, np.float32(2), np.int64(2), jnp.array([2], "float32"), jnp.int8(2)):
        out = getattr(x.at[1:], how)(value)
        assert (out.dtype, out.weak_type) == ("float32" if divided else dtype, False), value
        expected = {"set": 2, "add": 6, "subtract": 2, "multiply": 8, "divide": 2, "power": 16}
        np.testing.assert_array_equal(out.real.astype("float32"), [9, expected.get(how, 4)])
    weak = jnp.asarray(9.0).at[()]
    assert getattr(weak, how)(np.float16(2)).weak_type
