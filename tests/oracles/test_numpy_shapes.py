"""Creating, reshaping, joining and cutting arrays against NumPy."""

import itertools

import numpy as np
import pytest
import scipy.sparse

import phalanx
import phalanx.numpy as jnp

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
M = np.arange(12, dtype=np.int32).reshape(3, 4)
V = np.array([3, 1, 2], np.int32)

# name of the function, arguments; the same of both libraries
CASES = [
    ("reshape", X, (4, 6)),
    ("reshape", X, (4, -1)),
    ("reshape", X, -1),
    ("ravel", M),
    ("transpose", X),
    ("transpose", X, (1, 0, 2)),
    ("matrix_transpose", X),
    ("swapaxes", X, 0, -1),
    ("moveaxis", X, 0, -1),
    ("moveaxis", X, (0, 1), (-1, 0)),
    ("rollaxis", X, 2),
    ("rollaxis", X, 0, 3),
    ("expand_dims", X, (0, -1)),
    ("expand_dims", M, 1),
    ("squeeze", X[:, :1]),
    ("squeeze", X[:, :1], 1),
    ("broadcast_to", V, (2, 3)),
    ("flip", X),
    ("flip", X, 1),
    ("flip", X, (0, 2)),
    ("fliplr", M),
    ("flipud", M),
    *[("rot90", M, k) for k in range(-1, 4)],
    ("rot90", X, 1, (1, 2)),
    ("roll", M, 2),
    ("roll", M, -1, 1),
    ("roll", M, (1, 2), (0, 1)),
    ("resize", V, (2, 4)),
    ("tile", M, 2),
    ("tile", M, (2, 1, 3)),
    ("tile", X, 2),
    ("repeat", M, 2),
    ("repeat", M, 3, 1),
    ("repeat", M, (1, 0, 2), 0),
    ("append", M, M),
    ("append", M, M, 1),
    ("delete", M, 1, 0),
    ("delete", M, np.array([0, 2]), 1),
    ("delete", M, slice(0, 2), 1),
    ("insert", V, 1, 9),
    ("insert", M, 1, 9, 0),
    ("insert", M, 2, V, 1),
    ("insert", V, np.array([0, 2]), np.array([7, 8])),
    ("trim_zeros", np.array([0, 0, 1, 0, 2, 0])),
    ("atleast_1d", np.float32(3)),
    ("atleast_2d", V),
    ("atleast_3d", V),
    ("atleast_3d", M),
    ("tril", M, 1),
    ("triu", X, -1),
    ("diag", V),
    ("diag", V, 2),
    ("diag", V, -1),
    ("diag", M, 1),
    ("diagflat", M[:1]),
    *[("diagonal", M, k) for k in (-2, -1, 0, 1, 3)],
    ("diagonal", X, 1, 0, 2),
    ("trace", M),
    ("trace", X, 1, 1, 2),
    ("vander", V),
    ("vander", V, 4, True),
    ("diff", M),
    ("diff", M, 2, 0),
    ("ediff1d", V),
    ("kron", M, V),
    ("outer", V, M),
]


@pytest.mark.parametrize("name, args", [(name, args) for name, *args in CASES])
def test_like_numpy(name, args):
    found = getattr(jnp, name)(*args)
    expected = getattr(np, name)(*args)
    assert found.dtype == phalanx.dtypes.canonicalize_dtype(expected.dtype)
    np.testing.assert_array_equal(found, expected)


STAGED = [c for c in CASES if c[0] not in ("delete", "insert", "trim_zeros")]


@pytest.mark.parametrize("case", STAGED[::3], ids=lambda c: c[0])
def test_under_jit(case):
    name, x, *args = case
    found = phalanx.jit(lambda x: getattr(jnp, name)(x, *args))(x)
    np.testing.assert_array_equal(found, getattr(np, name)(x, *args))


JOINS = [
    ("concatenate", [M, M], 0),
    ("concatenate", [M, M[:1]], 0),
    ("concatenate", [M, X[0]], 1),
    ("concatenate", [M, V], None),
    ("stack", [V, V], 1),
    ("stack", [M, M], -1),
    ("vstack", [V, V]),
    ("hstack", [V, V]),
    ("hstack", [M, M]),
    ("dstack", [V, V]),
    ("dstack", [M, M]),
    ("column_stack", [V, V, M[:, :2]]),
    ("block", [[M, M], [M, M]]),
    ("block", [V, V]),
]


@pytest.mark.parametrize("name, xs, args", [(name, xs, args) for name, xs, *args in JOINS])
def test_joining(name, xs, args):
    nested = [[*map(jnp.array, v)] if isinstance(v, list) else jnp.array(v) for v in xs]
    np.testing.assert_array_equal(getattr(jnp, name)(nested, *args), getattr(np, name)(xs, *args))


class Blocks:
    """A sequence without ``__iter__``: Python asks for its elements one by one."""

    def __init__(self, *arrays):
        self.arrays = arrays

    def __len__(self):
        return len(self.arrays)

    def __getitem__(self, i):
        return self.arrays[i]


@pytest.mark.parametrize("case", [c for c in JOINS if c[0] != "block"], ids=lambda c: c[0])
def test_joining_what_is_a_sequence_by_its_elements(case):
    name, xs, *args = case
    found = getattr(jnp, name)(Blocks(*map(jnp.array, xs)), *args)
    np.testing.assert_array_equal(found, getattr(np, name)(xs, *args))
    with pytest.raises(TypeError, match="a sequence of arrays is needed, got <object"):
        getattr(jnp, name)(object(), *args)


@pytest.mark.parametrize("sections", [2, [1, 3], (0, 2)])
@pytest.mark.parametrize("name", ["split", "array_split"])
def test_splitting(name, sections):
    found, expected = (getattr(lib, name)(M, sections, 1) for lib in (jnp, np))
    assert len(found) == len(expected)
    for f, e in zip(found, expected, strict=True):
        np.testing.assert_array_equal(f, e)
    with pytest.raises(ValueError, match="see array_split"):
        jnp.split(M, 2, 0)
    assert [len(p) for p in jnp.array_split(M, 2, 0)] == [2, 1]


PADS = [
    ("constant", {}),
    ("constant", {"constant_values": 7}),
    ("constant", {"constant_values": ((1, 2), (3, 4))}),
    ("edge", {}),
    ("reflect", {}),
    ("symmetric", {}),
    ("wrap", {}),
    ("linear_ramp", {"end_values": 5}),
    ("maximum", {}),
    ("minimum", {}),
    ("mean", {}),
]


@pytest.mark.parametrize("mode,options", PADS, ids=lambda v: str(v))
@pytest.mark.parametrize("width", [1, (1, 2), ((0, 2), (3, 1))])
def test_pad(mode, options, width):
    x = M.astype(np.float32)
    np.testing.assert_allclose(
        jnp.pad(x, width, mode, **options), np.pad(x, width, mode, **options), rtol=1e-6
    )


def test_traced_shift():
    for shift in (-5, 0, 2, 9):
        found = phalanx.jit(lambda x, s: jnp.roll(x, s, 1))(M, shift)
        np.testing.assert_array_equal(found, np.roll(M, shift, 1))


def test_traced_repeats():
    found = phalanx.jit(lambda r: jnp.repeat(jnp.array(V), r, total_repeat_length=5))(V)
    np.testing.assert_array_equal(found, np.repeat(V, V)[:5])


def test_column_major_order():
    for name, *args in (("reshape", X, (6, 4)), ("ravel", M)):
        found, expected = (getattr(lib, name)(*args, order="F") for lib in (jnp, np))
        np.testing.assert_array_equal(found, expected)


CREATED = [
    ("zeros", (2, 3)),
    ("ones", 3),
    ("full", (2, 2), 7.5),
    ("eye", 3),
    ("eye", 3, 4, 1),
    ("eye", 3, 2, -1),
    ("identity", 2),
    ("tri", 3, 4, 1),
    ("arange", 5),
    ("arange", 2, 9, 3),
    ("arange", 9, 2, -3),
    ("arange", 0.0, 1.0, 0.1),
    ("arange", 5.0),
    ("arange", 3, 3),
    ("linspace", 0, 1, 7),
    ("linspace", 2, -1, 4, False),
    ("linspace", V, 2 * V, 3),
    ("linspace", 1, 5, 1),
    ("logspace", 0, 2, 5),
    ("geomspace", 1, 100, 5),
    ("geomspace", -1, -100, 3),
    ("geomspace", 1j, 16j, 5),
    ("geomspace", 1 - 1j, 8 - 8j, 4),
    ("indices", (2, 3)),
    ("tril_indices", 3),
    ("triu_indices", 3, 1, 4),
    ("hanning", 5),
    ("hamming", 5),
    ("blackman", 5),
    ("hanning", 1),
    ("zeros_like", M),
    ("full_like", M, 2),
]


@pytest.mark.parametrize("name, args", [(name, args) for name, *args in CREATED])
def test_creation(name, args):
    found, expected = getattr(jnp, name)(*args), getattr(np, name)(*args)
    np.testing.assert_allclose(np.array(found), np.array(expected), rtol=2e-6, atol=1e-6)
    if not isinstance(expected, tuple):
        assert found.dtype.kind == expected.dtype.kind


def test_ranges_become_operations():
    text = str(phalanx.make_program(lambda: (jnp.arange(5), jnp.zeros(3), jnp.eye(2)))())
    assert text.count("iota") == 3
    assert text.startswith("<lambda>() {")


def test_meshgrid():
    for options in ({}, {"indexing": "ij"}, {"sparse": True}):
        found = jnp.meshgrid(jnp.arange(3), jnp.arange(2), jnp.arange(4), **options)
        expected = np.meshgrid(np.arange(3), np.arange(2), np.arange(4), **options)
        for f, e in zip(found, expected, strict=True):
            np.testing.assert_array_equal(f, e)
    np.testing.assert_array_equal(jnp.mgrid[0:3, 0:2], np.mgrid[0:3, 0:2])


def test_arrays_of_data():
    assert jnp.array([1, 2]).dtype == jnp.int32
    assert jnp.array([1, 2.5]).dtype == jnp.float32
    assert jnp.array([True]).dtype == bool
    assert jnp.array([[1j]]).dtype == jnp.complex64
    assert jnp.array(np.arange(2.0)).dtype == jnp.float32
    assert jnp.array([np.float16(1), 2.5]).dtype == jnp.float16
    assert jnp.array([]).shape == (0,)
    assert jnp.array(3, ndmin=2).shape == (1, 1)
    assert jnp.array([jnp.ones(2), [3, 4]]).tolist() == [[1.0, 1.0], [3.0, 4.0]]
    assert jnp.array(2.7, dtype=int) == 2
    assert jnp.asarray(x := jnp.ones(2)) is x
    assert jnp.array(x) is not x
    assert jnp.array(range(3)).tolist() == [0, 1, 2]
    assert phalanx.jit(lambda x: jnp.array([x, 1.0, [x][0]]))(2.0).tolist() == [2.0, 1.0, 2.0]
    for data, error in (
        ("text", TypeError),
        (None, TypeError),
        ([1, "a"], TypeError),
        ([[1], [1, 2]], ValueError),
        ([2**40], OverflowError),
        ([jnp.ones(2), jnp.ones(3)], ValueError),
    ):
        with pytest.raises(error, match="array"):
            jnp.array(data)


def test_memory_and_text():
    assert jnp.frombuffer(b"\1\2", dtype="uint8").tolist() == [1, 2]
    assert jnp.fromfunction(lambda i, j: i + j, (2, 2)).tolist() == [[0.0, 1.0], [1.0, 2.0]]
    assert jnp.from_dlpack(np.arange(3)).tolist() == [0, 1, 2]


def test_devices():
    last = phalanx.devices()[-1]
    assert jnp.zeros(3, device=last).devices() == {last}
    assert jnp.array([1, 2], device=last).devices() == {last}


ERRORS = {
    "sizes": (lambda: jnp.reshape(X, (5, 5)), "reshape"),
    "rest": (lambda: jnp.reshape(X, (5, -1)), "not divisible by 5"),
    "negative": (lambda: jnp.zeros((2, -1)), "must not be negative"),
    "axis": (lambda: jnp.swapaxes(M, 0, 5), "swapaxes: dimension 5 is out of bounds"),
    "join": (lambda: jnp.concatenate([M, X[0].T]), "must have equal shapes but along axis 0"),
    "none": (lambda: jnp.concatenate([]), "at least one array"),
    "pad": (lambda: jnp.pad(M, 1, "magic"), "mode must be one of constant"),
    "broadcast": (lambda: jnp.broadcast_to(M, (3, 3)), "broadcast"),
    "squeeze": (lambda: jnp.squeeze(M, 0), "must have length 1"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case):
    function, text = ERRORS[case]
    with pytest.raises(ValueError, match=text):
        function()


def test_shapes_must_be_integers():
    with pytest.raises(TypeError, match="the lengths in a shape must be integers"):
        jnp.zeros((2.5,))
    assert jnp.zeros((np.int64(2), jnp.array(3))).shape == (2, 3)


@pytest.mark.parametrize("shape", [((2,), 3), [3, (2,)], (2.0, 3), "6"])
def test_what_is_reshaped_has_a_length_per_dimension(shape):
    with pytest.raises(TypeError, match="reshape: the lengths in a shape must be integers, got"):
        jnp.arange(6).reshape(shape)


def test_traced_lengths_are_refused_in_every_place():
    x = jnp.arange(6)
    for reshaped in (
        lambda n: x.reshape(n, 2),
        lambda n: x.reshape((2, n)),
        lambda n: x.reshape(n),
        lambda n: jnp.reshape(x, [n, -1]),
    ):
        with pytest.raises(phalanx.errors.TracerIntegerConversionError, match="depends on n"):
            phalanx.jit(reshaped)(3)


def test_inserting_at_traced_positions():
    rng = np.random.default_rng(0)
    x, several, new = np.arange(5), rng.integers(-5, 6, 3), np.array([7, 8, 9])
    for place in (several, np.array(2), np.array(-1), np.array(5)):
        found = phalanx.jit(jnp.insert)(x, place, new)
        np.testing.assert_array_equal(found, np.insert(x, place, new))
    rows = phalanx.jit(lambda m, i: jnp.insert(m, i, V, 0))(M[:, :3], 1)
    np.testing.assert_array_equal(rows, np.insert(M[:, :3], 1, V, 0))


@pytest.mark.parametrize("k", [-1, 0, 2])
def test_traced_diagonals(k):
    for name in ("eye", "tri"):
        found = phalanx.jit(lambda k, name=name: getattr(jnp, name)(3, 4, k))(k)
        np.testing.assert_array_equal(found, getattr(np, name)(3, 4, k))
    for name in ("tril", "triu"):
        np.testing.assert_array_equal(
            phalanx.jit(getattr(jnp, name))(X, k), getattr(np, name)(X, k)
        )
    with pytest.raises(TypeError, match="number of a diagonal must be an integer"):
        jnp.eye(3, k=jnp.array(1.5))


def test_shapes_of_lists():
    nested = [[1, 2, 3], [4, 5, 6]]
    assert jnp.shape(nested) == (2, 3) and jnp.ndim(nested) == 2 and jnp.size(nested, 1) == 3


def test_shapes_of_what_tells_them():
    sparse = scipy.sparse.csr_matrix(np.eye(2, 3))
    for x in (sparse, phalanx.ShapeDtypeStruct((2, 3), "float32")):
        assert jnp.shape(x) == (2, 3) and jnp.ndim(x) == 2 and jnp.size(x, 1) == 3


def test_none_has_no_dimensions():
    assert jnp.shape(None) == np.shape(None) == () and jnp.ndim(None) == 0


def test_positions_of_dimensions_as_arrays():
    for axis in (np.array(1), jnp.array(1), np.array([0, 3]), [0, -1], ()):
        found = jnp.expand_dims(V[:, None], axis)
        wanted = axis if isinstance(axis, list | tuple) else np.asarray(axis).tolist()
        wanted = tuple(wanted) if isinstance(wanted, list) else wanted
        assert found.shape == np.expand_dims(V[:, None], wanted).shape


def test_zeros_are_trimmed_in_every_dimension():
    x = np.zeros((4, 5, 3), int)
    x[1:3, 2, 0:2] = 1
    np.testing.assert_array_equal(jnp.trim_zeros(x), x[1:3, 2:3, 0:2])
    np.testing.assert_array_equal(jnp.trim_zeros(x, "f", axis=(0, 2)), x[1:])
    assert jnp.trim_zeros(np.zeros((2, 3))).shape == (0, 0)
    assert jnp.trim_zeros(np.float32(3)).shape == ()


def test_a_condition_that_holds_beyond_the_end():
    np.testing.assert_array_equal(jnp.compress(np.array([True, False, True, False]), V), V[[0, 2]])
    with pytest.raises(IndexError, match="holds at position 3, but axis 0 of the array"):
        jnp.compress(np.array([True, False, True, True]), V)


def test_functions_of_elements_are_given_none():
    add = jnp.vectorize(lambda x, y: x if y is None else x + y, signature="(),()->()")
    np.testing.assert_array_equal(add(V, None), V)
    np.testing.assert_array_equal(add(V, V), V + V)
    norm = jnp.vectorize(lambda w, x: jnp.sum(x) if w is None else w @ x, signature="(n),(n)->()")
    np.testing.assert_array_equal(norm(None, M), M.sum(1))


def test_flat_positions_of_indices_that_broadcast():
    for mode in ("raise", "clip", "wrap"):
        index = (np.int32(1), np.array([0, 1, 2]))
        found = jnp.ravel_multi_index(index, (3, 3), mode=mode)
        np.testing.assert_array_equal(found, np.ravel_multi_index(index, (3, 3), mode=mode))


def test_flat_positions_are_of_a_dtype_that_holds_them():
    for mode, given in itertools.product(("raise", "clip", "wrap"), ("int8", "uint8", "int32")):
        index = (np.array([100, 3], given), np.array([120, 3], given))
        found = jnp.ravel_multi_index(index, (200, 300), mode=mode)
        np.testing.assert_array_equal(found, np.ravel_multi_index(index, (200, 300), mode=mode))
        assert jnp.ravel_multi_index((index[1][1:],), (9,), mode=mode).dtype == given
        with pytest.raises(ValueError, match=r"up to 59999.*fit int8"):
            jnp.ravel_multi_index(index, (200, 300), mode=mode, dtype="int8")
    for mode in ("clip", "wrap"):  # of indices that are outside of the dtype of the result
        found = jnp.ravel_multi_index((np.int32([500]),), (9,), mode=mode, dtype="int8")
        np.testing.assert_array_equal(found, np.ravel_multi_index([[500]], (9,), mode=mode))


@pytest.mark.parametrize("around", [phalanx.jit, phalanx.vmap, phalanx.grad])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_numpy_array_in_another_shape_is_a_constant_to_what_is_traced(order, around):
    x, seen = np.arange(6, dtype=np.float32), []

    def f(y):
        known = jnp.reshape(x, (2, -1), order)
        seen.append(np.asarray(known))
        return y * jnp.sum(known)

    around(f)(jnp.ones(()) if around is phalanx.grad else jnp.ones(1))
    np.testing.assert_array_equal(seen, [x.reshape((2, -1), order=order)] * len(seen))
    assert seen
