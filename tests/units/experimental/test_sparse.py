"""Sparse arrays do what dense ones do, in every layout, with padding, and with duplicates."""

import operator

import jax as peer
import jax.experimental.sparse as peer_sparse
import numpy as np
import pytest
import scipy.sparse

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.experimental import sparse
from phalanx.experimental.sparse import BCOO, BCSR

RNG = np.random.default_rng(0)
SOME = [  # how many dimensions are of the batch, and dense
    (0, 0),
    (1, 1),
]


def scattered(shape, seed=0):
    """Whole numbers, most of them zero."""
    rng = np.random.default_rng(seed)
    return (rng.integers(-4, 5, shape) * (rng.random(shape) < 0.5)).astype(np.float32)


X = scattered((3, 4, 2))
SQUARE = scattered((4, 4), 1)


def made(x, n_batch=0, n_dense=0):
    """``x`` with padding, in which nothing may be read, and with every entry in two parts."""
    batch, tail = x.shape[:n_batch], x.shape[n_batch:]
    n_sparse = len(tail) - n_dense
    rows = x.reshape(-1, *tail)
    places = [np.argwhere(np.any(r != 0, axis=tuple(range(n_sparse, r.ndim)))) for r in rows]
    nse = 2 * max(map(len, places)) + 1
    indices = np.tile(np.array(tail[:n_sparse], np.int32), (len(rows), nse, 1))
    data = np.full((len(rows), nse, *tail[n_sparse:]), 7 if n_sparse else 0, x.dtype)
    for r, at, own, values in zip(rows, places, indices, data, strict=True):
        count = len(at)
        for k, part in enumerate((0.25, 0.75)):
            own[nse - (k + 1) * count : nse - k * count] = at[::-1]
            values[nse - (k + 1) * count : nse - k * count] = part * r[tuple(at[::-1].T)]
    whole = data.reshape(*batch, *data.shape[1:]), indices.reshape(*batch, *indices.shape[1:])
    return BCOO(whole, shape=x.shape)


def dense(x):
    return np.asarray(sparse.todense(x))


def same(ours, wanted):
    ours = dense(ours)
    assert ours.shape == np.shape(wanted)
    np.testing.assert_allclose(ours, wanted, rtol=1e-5, atol=1e-5)


# ---- layouts --------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [*SOME, (3, 0), (0, 3), (1, 2)])
def test_from_and_to_dense(layout):
    mat = BCOO.fromdense(X, n_batch=layout[0], n_dense=layout[1])
    assert (mat.n_batch, mat.n_dense, mat.shape, mat.dtype) == (*layout, X.shape, X.dtype)
    assert mat.n_batch + mat.n_sparse + mat.n_dense == mat.ndim == 3 and mat.size == X.size
    same(mat, X)
    same(made(X, *layout), X)


CHANGES = [((0, 0), (2, 1)), ((1, 1), (0, 0)), ((2, 0), (0, 2)), ((3, 0), (0, 3)), ((0, 1), (1, 1))]


@pytest.mark.parametrize("before, after", CHANGES)
def test_layouts_become_others(before, after):
    changed = made(X, *before).update_layout(n_batch=after[0], n_dense=after[1])
    assert (changed.n_batch, changed.n_dense) == after
    same(changed, X)


@pytest.mark.parametrize("layout", SOME)
def test_lists(layout):
    mat = made(X, *layout)
    once = mat.sum_duplicates()
    for other in (mat.sort_indices(), once, phalanx.jit(BCOO.sum_duplicates)(mat)):
        same(other, X)
    direct = BCOO.fromdense(X, n_batch=layout[0], n_dense=layout[1])
    assert once.unique_indices and once.nse == direct.nse
    for rows in np.asarray(mat.sort_indices().indices).reshape(-1, mat.nse, mat.n_sparse):
        assert [*map(tuple, rows)] == sorted(map(tuple, rows))
    again = sparse.bcoo_extract(mat, X)
    same(again, X)
    with pytest.raises(ValueError, match="shapes must be equal"):
        sparse.bcoo_extract(mat, X[0])


def test_empty_ones():
    for shape in ((0, 3), (3, 0)):
        same(BCOO.fromdense(np.zeros(shape, np.float32)), np.zeros(shape))
        same(sparse.empty(shape, nse=2).sum_duplicates(), np.zeros(shape))
        same(sparse.empty(shape) @ np.ones((shape[1], 2), np.float32), np.zeros((shape[0], 2)))


def test_products_of_one_matrix_and_many_are_those_of_numpy():
    same(made(SQUARE) @ X, SQUARE @ X)
    same(made(SQUARE) @ made(X), SQUARE @ X)
    same(X.mT @ made(SQUARE), X.mT @ SQUARE)
    same(made(X) @ SQUARE[:2], X @ SQUARE[:2])


# ---- operations -----------------------------------------------------------------------------

FUNCTIONS = {
    "neg": lambda x: -x,
    "twice": lambda x: 2 * x + x / 2 - x,
    "transpose": lambda x: x.T,
    "order": lambda x: x.transpose((1, 2, 0)),
    "reshape": lambda x: x.reshape(4, 6),
    "reshape_rows": lambda x: x.reshape(3, -1),
    "sum_0": lambda x: x.sum(0),
    "sum_1": lambda x: x.sum(axis=1),
    "sum_2": lambda x: x.sum(-1),
    "sum_02": lambda x: x.sum((0, 2)),
    "sum": lambda x: x.sum(),
    "keepdims": lambda x: x.sum(1, keepdims=True),
    "by_row": lambda x: x * np.arange(2, dtype=np.float32),
    "by_column": lambda x: x * np.arange(4, dtype=np.float32)[:, None],
    "by_all": lambda x: x * scattered(X.shape, 5),
    "plus": lambda x: x + scattered(X.shape, 6),
    "minus": lambda x: scattered(X.shape, 6) - x,
    "first": lambda x: x[0],
    "last": lambda x: x[..., -1],
    "part": lambda x: x[1:, ::3, None, 1],
    "one": lambda x: x[2, 3, 1],
    "square": lambda x: x**2,
    "abs": abs,
    "vector": lambda x: x @ np.arange(2, dtype=np.float32),
    "matrix": lambda x: x @ scattered((2, 5), 2),
    "from_left": lambda x: np.arange(3, dtype=np.float32) @ x.reshape(3, 8),
    "half": lambda x: x.astype("float16"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_operators(name):
    function = FUNCTIONS[name]
    for layout in ((0, 0), (1, 1)):
        same(phalanx.jit(function)(made(X, *layout)), function(X))


@pytest.mark.parametrize("layout, other", [((0, 0), (1, 1)), ((2, 0), (1, 0)), ((0, 2), (0, 1))])
def test_operators_of_two(layout, other):
    y = scattered(X.shape, 3)

    @phalanx.jit
    def several(a, b):
        joined = [sparse.bcoo_concatenate([a, b], dimension=d) for d in range(3)]
        return a + b, a - b, a * b, *joined

    wanted = (X + y, X - y, X * y, *[np.concatenate([X, y], d) for d in range(3)])
    for ours, theirs in zip(several(made(X, *layout), made(y, *other)), wanted, strict=True):
        same(ours, theirs)


CONTRACTIONS = [
    ((3, 4, 2), (2, 5), (((2,), (0,)), ((), ()))),
    ((3, 4, 2), (3, 5), (((0,), (0,)), ((), ()))),
    ((3, 4, 2), (4, 2, 5), (((1, 2), (0, 1)), ((), ()))),
    ((3, 4, 2), (2, 3, 5), (((2,), (0,)), ((0,), (1,)))),
    ((3, 4, 2), (3, 4, 2), (((0, 1, 2), (0, 1, 2)), ((), ()))),
    ((3, 4, 2), (6, 4, 2), (((1,), (1,)), ((2,), (2,)))),
    ((3, 4, 2), (5,), (((), ()), ((), ()))),
]


@pytest.mark.parametrize("left, right, numbers", CONTRACTIONS)
def test_contractions(left, right, numbers):
    x, y = scattered(left), scattered(right, 7)
    wanted = np.asarray(lax.dot_general(x, y, numbers))
    (contract, batch) = numbers
    turned = contract[::-1], batch[::-1]

    @phalanx.jit
    def products(a, b):
        return (
            sparse.bcoo_dot_general(a, y, dimension_numbers=numbers),
            sparse.bcoo_dot_general(y, b, dimension_numbers=turned),
            sparse.bcoo_dot_general(b, made(y), dimension_numbers=numbers),
        )

    left, right, both = products(made(x, 2), made(x, 0, 1))
    same(left, wanted)
    same(right, np.asarray(lax.dot_general(y, x, turned)))
    same(both, wanted)


@pytest.mark.parametrize("layout", SOME)
def test_parts_and_dimensions(layout):
    wide = {"shape": (3, 4, 5, 2), "broadcast_dimensions": (0, 1, 3)}
    outer = {"shape": (5, 3, 4, 2), "broadcast_dimensions": (1, 2, 3)}
    cut = {"start_indices": (1, 0, 1), "limit_indices": (3, 4, 2), "strides": (1, 2, 1)}

    @phalanx.jit
    def several(mat, one, i):
        return (
            sparse.bcoo_slice(mat, **cut),
            sparse.bcoo_dynamic_slice(mat, (i, 1, 0), (2, 2, 1)),
            sparse.bcoo_rev(mat, (0, 2)),
            sparse.bcoo_squeeze(one, dimensions=(1,)),
            sparse.bcoo_broadcast_in_dim(one, **wide),
            sparse.bcoo_broadcast_in_dim(mat, **outer),
        )

    wanted = (
        X[1:3, 0:4:2, 1:2],
        X[1:3, 1:3, :1],
        X[::-1, :, ::-1],
        X[:, 0],
        np.broadcast_to(X[:, :1, None], (3, 4, 5, 2)),
        np.broadcast_to(X, (5, 3, 4, 2)),
    )
    found = several(made(X, *layout), made(X[:, :1], *layout), 2)
    for ours, theirs in zip(found, wanted, strict=True):
        same(ours, theirs)


# ---- transformations ------------------------------------------------------------------------


@pytest.mark.spmd
@pytest.mark.parametrize("mapping", [phalanx.vmap, phalanx.pmap])
def test_lanes_are_of_the_batch(mapping):
    mat, v = made(X, 1), np.arange(2, dtype=np.float32)
    same(mapping(lambda m: m @ v)(mat), X @ v)
    turned = mapping(lambda m: m.T)(mat)
    assert (turned.shape, turned.n_batch) == ((3, 2, 4), 1)
    same(turned, X.transpose(0, 2, 1))
    same(mapping(lambda m, x: m @ x, in_axes=(None, 0))(made(SQUARE), SQUARE), SQUARE @ SQUARE.T)


def test_loops_carry_them():
    powers = lax.fori_loop(0, 3, lambda i, m: (m[0], m[0] @ m[1]), (made(SQUARE), np.eye(4)[0]))
    same(powers[1], np.linalg.matrix_power(SQUARE, 3) @ np.eye(4)[0])


def test_derivatives_by_entries():
    mat, v = BCOO.fromdense(SQUARE), np.arange(4, dtype=np.float32)

    def loss(m, v):
        return jnp.sum(jnp.sin(m @ v))

    dm, dv = sparse.grad(loss, argnums=(0, 1))(mat, v)
    full, wanted = phalanx.grad(loss, argnums=(0, 1))(jnp.asarray(SQUARE), v)
    same(dm, np.where(SQUARE != 0, full, 0))
    same(dv, wanted)
    same(phalanx.grad(lambda v: loss(mat, v))(v), wanted)
    value, again = phalanx.jit(sparse.value_and_grad(loss))(mat, v)
    same(again, dense(dm))
    grads, aux = sparse.grad(lambda m: (m.sum(), 5), has_aux=True)(mat)
    same(grads, SQUARE != 0)
    assert aux == 5 and value.shape == ()
    tree = sparse.grad(lambda p: loss(p["m"], p["v"]))({"m": BCSR.fromdense(SQUARE), "v": v})
    same(tree["m"], np.where(SQUARE != 0, full, 0))


SPARSIFIED = {
    "product": lambda m, v: m @ v,
    "einsum": lambda m, v: jnp.einsum("ij,kj->ik", m, m),
    "chain": lambda m, v: jnp.sum(jnp.sin(m * v) + m, axis=0),
    "mean": lambda m, v: jnp.mean(m),
    "rows": lambda m, v: jnp.concatenate([m[1:3], m]).T,
    "jit": lambda m, v: phalanx.jit(lambda x: x * 2 - x)(m).reshape(2, 8),
    "squares": lambda m, v: jnp.tanh(m) ** 2,
    "dense": lambda m, v: jnp.exp(v) + m @ v,
    "backwards": lambda m, v: v @ m[::-1],
    "tree": lambda m, v: {"a": -m, "b": (v, m.astype("float16"))},
}


@pytest.mark.parametrize("name", SPARSIFIED)
def test_sparsified(name):
    function, v = SPARSIFIED[name], np.arange(4, dtype=np.float32)
    wanted = function(jnp.asarray(SQUARE), v)
    for given in (made(SQUARE, 1), BCSR.fromdense(SQUARE)):
        ours = sparse.todense(sparse.sparsify(function)(given, v))
        phalanx.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 1e-3, 1e-5), ours, wanted)
    same(phalanx.jit(sparse.sparsify(SPARSIFIED["product"]))(given, v), SQUARE @ v)


def test_what_is_summed_over_all_dimensions_is_an_array():
    whole = sparse.sparsify(lambda m: (m * 2).sum())(MAT)
    assert isinstance(whole, phalanx.Array)
    same(whole, MAT.todense().sum() * 2)


def test_sparsified_functions_close_over_traced_values():
    def loss(v, m):
        return jnp.sum(sparse.sparsify(lambda m: (m @ v) ** 2)(m))

    v, mat = np.arange(4, dtype=np.float32), made(SQUARE)
    wanted = 2 * SQUARE.T @ (SQUARE @ v)
    np.testing.assert_allclose(phalanx.jit(phalanx.grad(loss))(v, mat), wanted, rtol=1e-5)


# ---- other forms ----------------------------------------------------------------------------


def test_rows_of_entries():
    rows = BCSR.fromdense(SQUARE, nse=14)
    same(rows, SQUARE)
    same(rows.T, SQUARE.T)
    same(rows @ SQUARE, SQUARE @ SQUARE)
    same(SQUARE @ rows, SQUARE @ SQUARE)
    same(rows + rows, SQUARE * 2)
    same(phalanx.jit(lambda m: -m + m * SQUARE)(rows), -SQUARE + SQUARE * SQUARE)
    same(rows.sum(0), SQUARE.sum(0))
    scipys = scipy.sparse.csr_matrix(SQUARE)
    same(BCSR.from_scipy_sparse(scipys), SQUARE)
    same(BCOO.from_scipy_sparse(scipys), SQUARE)
    assert isinstance(rows, sparse.JAXSparse) and isinstance(rows.to_bcoo(), sparse.JAXSparse)


ARRAYS = {"COO": ("row", "col"), "CSR": ("indices", "indptr"), "CSC": ("indices", "indptr")}


@pytest.mark.parametrize("nse", [None, 14])
@pytest.mark.parametrize("kind", ARRAYS)
def test_matrices_without_batches_agree_with_the_peers(kind, nse):
    wide = SQUARE[:3]
    v, columns = np.float32([1, -2, 3, 5]), SQUARE[:, :2]
    ours, theirs = (getattr(m, kind).fromdense(wide, nse=nse) for m in (sparse, peer_sparse))
    for name in ("data", *ARRAYS[kind]):
        assert getattr(ours, name).tolist() == getattr(theirs, name).tolist(), name
    assert type(ours.T).__name__ == type(theirs.T).__name__ and repr(ours) == repr(theirs)
    same(ours, wide)
    same(ours.T, wide.T)
    for m, x in ((ours, v), (ours, columns), (ours.T, v[:3])):
        same(phalanx.jit(lambda m, x: m @ x)(m, x), dense(m) @ x)
    slopes = phalanx.jit(sparse.grad(lambda m: jnp.sum(jnp.sin(m @ v))))(ours)
    # by hand: the peer's of columns were wrong in 0.10
    wanted, columns_first = np.outer(np.cos(wide @ v), v), kind == "CSC"
    wanted = wanted.T[wide.T != 0] if columns_first else wanted[wide != 0]
    np.testing.assert_allclose(slopes.data[: len(wanted)], wanted, rtol=1e-5)
    assert type(slopes) is type(ours)
    same(type(ours).from_scipy_sparse(scipy.sparse.csr_matrix(wide)), wide)
    same(sparse.eye(2, 3, sparse_format=kind.lower()), np.eye(2, 3))
    rows = phalanx.vmap(lambda x: ours @ x)(columns.T)
    np.testing.assert_allclose(rows, (wide @ columns).T, rtol=1e-5)


@pytest.mark.parametrize("kind", ["coo", "csr"])
def test_products_of_matrices_without_batches(kind):
    mat = getattr(sparse, f"{kind}_fromdense")(SQUARE[:3])
    same(getattr(sparse, f"{kind}_todense")(mat), SQUARE[:3])
    matvec, matmat = (getattr(sparse, f"{kind}_{name}") for name in ("matvec", "matmat"))
    same(matvec(mat, SQUARE[0]), SQUARE[:3] @ SQUARE[0])
    same(matvec(mat, SQUARE[0, :3], transpose=True), SQUARE[:3].T @ SQUARE[0, :3])
    same(matmat(mat, SQUARE), SQUARE[:3] @ SQUARE)
    same(matmat(mat, SQUARE[:3], transpose=True), SQUARE[:3].T @ SQUARE[:3])
    for wrong in (lambda: matvec(mat, SQUARE), lambda: matmat(mat, SQUARE[0])):
        with pytest.raises(ValueError, match=rf"{kind}_mat.*: an array of . dimensions and 4 rows"):
            wrong()


def test_functions_of_rows_of_entries():
    rows, numbers = BCSR.fromdense(SQUARE), (((0,), (0,)), ((), ()))
    same(sparse.bcsr_dot_general(rows, SQUARE, dimension_numbers=numbers), SQUARE.T @ SQUARE)
    same(sparse.bcsr_extract(rows.indices, rows.indptr, SQUARE * 2), rows.data * 2)
    for axis in (0, 1):
        same(
            sparse.bcsr_concatenate([rows, rows], dimension=axis),
            np.concatenate([SQUARE] * 2, axis),
        )
    twice = BCSR((np.float32([1, 2]), np.int32([1, 1]), np.int32([0, 2])), shape=(1, 2))
    assert sparse.bcsr_sum_duplicates(twice).data.tolist() == [3]


@pytest.mark.parametrize("name", ["jacfwd", "jacrev", "jacobian"])
def test_jacobians_by_entries_agree_with_the_peers(name):
    def slopes(sparse, np):
        mat, v = sparse.BCOO.fromdense(SQUARE), np.float32([1, 2, 3, 4])
        return getattr(sparse, name)(lambda m, x: np.sin(m @ x), argnums=(0, 1))(mat, v)

    (by_mat, by_v), (wanted, by_theirs) = slopes(sparse, jnp), slopes(peer_sparse, peer.numpy)
    assert by_mat.shape == wanted.shape and by_mat.n_batch == wanted.n_batch == 1
    assert by_mat.indices.tolist() == wanted.indices.tolist()
    np.testing.assert_allclose(by_mat.data, wanted.data, rtol=1e-5)
    np.testing.assert_allclose(by_v, by_theirs, rtol=1e-5)

    def both(p):
        return {"a": p["m"] @ p["v"], "b": jnp.sum(p["v"])}, 7

    rows = BCSR.fromdense(SQUARE)
    found, aux = getattr(sparse, name)(both, has_aux=True)({"m": rows, "v": jnp.ones(4)})
    assert aux == 7 and set(found) == {"a", "b"} and found["b"]["m"].shape == (4, 4)
    same(found["a"]["v"], SQUARE)


def test_those_that_are_made():
    for args in ((3,), (3, 5), (4, 3, -1), (3, 4, 2), (2, 2, 5)):
        same(sparse.eye(*args), np.eye(*args))
    same(sparse.eye(3, sparse_format="bcsr", dtype="int32"), np.eye(3))
    assert sparse.eye(3, n_batch=1).n_batch == 1
    key = phalanx.random.key(0)
    mat = sparse.random_bcoo(key, (3, 10, 4), nse=0.3, n_batch=1, n_dense=1, sorted_indices=True)
    assert (mat.shape, mat.nse, mat.n_batch, mat.n_dense) == ((3, 10, 4), 3, 1, 1)
    assert all(len(set(map(tuple, rows.tolist()))) == 3 for rows in mat.indices)
    with pytest.raises(ValueError, match="does not fit 4 positions"):
        sparse.random_bcoo(key, (2, 2), nse=5)
    with pytest.raises(ValueError, match="one of 'bcoo', 'bcsr', 'coo', 'csr', 'csc', got 'dia'"):
        sparse.eye(3, sparse_format="dia")


def test_linear_algebra():
    a = (scattered((30, 30), 8) + 10 * np.diag(np.arange(30))).astype(np.float32)
    rows, b = BCSR.fromdense(a + np.eye(30, dtype=np.float32)), np.arange(30, dtype=np.float32)
    solved = sparse.linalg.spsolve(rows.data, rows.indices, rows.indptr, b)
    np.testing.assert_allclose(solved, np.linalg.solve(dense(rows), b), rtol=2e-3, atol=2e-4)
    symmetric = (a + a.T) / 2
    start = RNG.normal(size=(30, 3)).astype(np.float32)
    values, vectors, steps = sparse.linalg.lobpcg_standard(BCOO.fromdense(symmetric), start)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(symmetric)[::-1][:3], rtol=1e-4)
    np.testing.assert_allclose(symmetric @ vectors, vectors * values, atol=2e-2)
    assert 1 < int(steps) < 100
    with pytest.raises(ValueError, match="expected search dim"):
        sparse.linalg.lobpcg_standard(symmetric, np.eye(30)[:, :6])


# ---- what is refused ------------------------------------------------------------------------

MAT = made(SQUARE)


@pytest.mark.parametrize("kind", [sparse.BCSR, sparse.COO, sparse.CSR, sparse.CSC])
def test_words_about_other_matrices_do_not_name_the_one_that_computes(kind):
    matrix = kind.fromdense(SQUARE)
    with pytest.raises(NotImplementedError, match=r"of shape \(\) to a sparse one of \(4, 4\)"):
        matrix + 1
    with pytest.raises(ValueError, match=r"to that of a sparse one, \(4, 4\)"):
        matrix * np.ones(7)


KINDS = [BCOO, BCSR, sparse.COO, sparse.CSR, sparse.CSC]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("compare", [operator.eq, operator.ne])
def test_elements_are_compared_with_those_of_dense_arrays_alone(kind, compare):
    matrix = kind.fromdense(SQUARE)
    others = [matrix, kind.fromdense(SQUARE), MAT, SQUARE, jnp.asarray(SQUARE), 0, np.float32(0)]
    for other in others:
        for pair in ((matrix, other), (other, matrix)):
            with pytest.raises(NotImplementedError, match=r"at test_sparse.py.*todense\(\)"):
                compare(*pair)
    with pytest.raises(NotImplementedError, match="todense"):
        phalanx.jit(compare)(matrix, jnp.asarray(SQUARE))
    assert compare(matrix.todense(), SQUARE).all() == (compare is operator.eq)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_array_is_another_object_than_a_matrix(kind):
    matrix = kind.fromdense(SQUARE)
    assert (matrix == None) is False and (matrix != "a") is True  # noqa: E711
    assert matrix in [None, "a", matrix] and {matrix: 1}[matrix] == 1


@pytest.mark.parametrize("wrong, error", [
    (lambda: MAT + 1, "would give a dense result"),
    (lambda: MAT / MAT, "would give a dense result"),
    (lambda: 2.0**MAT, "unsupported operand"),
    (lambda: MAT**-1, "would give a dense result"),
    (lambda: sparse.sparsify(jnp.exp)(MAT), r"exp of .*at test_sparse.py"),
    (lambda: sparse.sparsify(jnp.cos)(MAT), "would give a dense result"),
    (lambda: MAT * np.ones((2, 4, 4)), "does not broadcast to that of"),
    (lambda: MAT @ np.ones(3), r"differ in their lengths, at test_sparse.py"),
    (lambda: MAT + made(SQUARE[:2]), "must have one shape"),
    (lambda: MAT[5], "index 5 is beyond dimension 0"),
    (lambda: MAT[::-1], "slices that go forward"),
    (lambda: MAT[0, 0, 0], "does not fit"),
    (lambda: BCOO((np.ones(2), np.zeros((3, 2), int)), shape=(2, 3)), "data must be of shape"),
    (lambda: BCOO((np.ones(2), np.zeros((2, 1))), shape=(2,)), "indices must be integers"),
    (lambda: BCOO.fromdense(SQUARE, n_batch=2, n_dense=1), "do not fit"),
    (lambda: MAT.transpose((0, 0)), "is no permutation"),
    (lambda: MAT.update_layout(n_batch=3), "do not fit"),
    (lambda: MAT.reshape(3, 3), r"does not fill shape \(3, 3\)"),
    (lambda: sparse.bcoo_concatenate([MAT, made(SQUARE[:, :2])], dimension=0), "shapes must agree"),
    (lambda: BCSR.fromdense(X), "a matrix of sparse dimensions is needed"),
    (lambda: jnp.sin(MAT), "BCOO"),
    (lambda: phalanx.jit(BCOO.fromdense)(SQUARE), "value"),
])  # fmt: skip
def test_words(wrong, error):
    with pytest.raises((TypeError, ValueError, IndexError, NotImplementedError), match=error):
        wrong()
