"""Random keys are elements of arrays: what holds of arrays holds of arrays of keys."""

import copy
import pickle

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import dtypes, lax, random
from phalanx.laws import check_batch, check_jit, check_pmap
from phalanx.sharding import Mesh, NamedSharding, PartitionSpec

KEY = random.key(1)
KEYS = random.split(KEY, 8)
TABLE = random.split(KEY, (2, 3))
MASK = np.array([[True, False, True], [False, True, True]])


def words(keys):
    """The words of keys, which NumPy can look at."""
    return np.asarray(random.key_data(keys))


def same(actual, wanted):
    """Whether two arrays of keys are equal, in shape and in every word."""
    return actual.dtype is wanted.dtype and np.array_equal(words(actual), words(wanted))


# ---- arrays -----------------------------------------------------------------------------------


def test_keys_are_arrays():
    assert isinstance(KEY, phalanx.Array) and isinstance(TABLE, phalanx.Array)
    assert (TABLE.shape, TABLE.ndim, TABLE.size, len(TABLE)) == ((2, 3), 2, 6, 2)
    assert str(TABLE.dtype) == "key<fry>" and TABLE.dtype is KEY.dtype
    assert (TABLE.itemsize, TABLE.nbytes, TABLE.weak_type) == (8, 48, False)
    assert [row.shape for row in TABLE] == [(3,), (3,)]
    first, second = random.split(KEY)
    assert first.shape == () and not bool(first == second)
    with pytest.raises(TypeError, match="without dimensions"):
        len(KEY)
    with pytest.raises(IndexError, match=r"too many indices: an array key<fry>\[2,3\]"):
        TABLE[0, 0, 0]


def test_their_dtype_is_of_the_kind_of_keys():
    for kind in (dtypes.prng_key, dtypes.extended, np.generic, KEY.dtype):
        assert dtypes.issubdtype(KEY.dtype, kind)
    for kind in (np.number, np.floating, np.integer, np.float32, bool):
        assert not dtypes.issubdtype(KEY.dtype, kind)
    assert not dtypes.issubdtype(np.float32, dtypes.extended)
    assert not dtypes.issubdtype("float32", KEY.dtype)
    assert KEY.dtype != np.float32 and np.dtype("uint32") != KEY.dtype
    assert pickle.loads(pickle.dumps(KEY.dtype)) is KEY.dtype
    assert dtypes.result_type(KEY, TABLE) is KEY.dtype


def test_they_print_as_words_under_their_dtype():
    keys = random.wrap_key_data(np.uint32([[1, 2], [3, 4]]))
    assert repr(keys) == str(keys) == "Array((2,), dtype=key<fry>) overlaying:\n[[1 2]\n [3 4]]"
    assert f"{keys[0]}" == "Array((), dtype=key<fry>) overlaying:\n[1 2]"


MOVES = {
    "a row": lambda x, n: x[1],
    "an element": lambda x, n: x[1, -1],
    "slices": lambda x, n: x[:, ::-2],
    "an ellipsis and a new axis": lambda x, n: x[..., None, 0],
    "a mask": lambda x, n: x[MASK],
    "a list of positions": lambda x, n: x[:, np.array([2, 0])],
    "pairs of positions": lambda x, n: x[np.array([0, 1]), np.array([2, 1])],
    "reshape": lambda x, n: x.reshape(3, -1),
    "ravel": lambda x, n: x.ravel(),
    "transpose": lambda x, n: x.T,
    "moveaxis": lambda x, n: n.moveaxis(x, 0, -1),
    "expand_dims": lambda x, n: n.expand_dims(x, -1),
    "squeeze": lambda x, n: n.squeeze(x[:1], 0),
    "broadcast_to": lambda x, n: n.broadcast_to(x[0], (4, 3)),
    "flip": lambda x, n: n.flip(x, 1),
    "roll": lambda x, n: n.roll(x, 1, 1),
    "tile": lambda x, n: n.tile(x, (2, 1)),
    "repeat": lambda x, n: n.repeat(x, 2, 0),
    "stack": lambda x, n: n.stack([x, x], -1),
    "concatenate": lambda x, n: n.concatenate([x, x[:1]], 0),
    "hstack": lambda x, n: n.hstack([x, x]),
    "append": lambda x, n: n.append(x, x),
    "split": lambda x, n: n.split(x, 3, 1)[1],
    "take": lambda x, n: n.take(x, np.array([1, 0]), 0),
    "take_along_axis": lambda x, n: n.take_along_axis(x, np.array([[2], [0]]), 1),
    "where": lambda x, n: n.where(MASK, x, x[0]),
    "diagonal": lambda x, n: n.diagonal(x),
    "pad at the edge": lambda x, n: n.pad(x, 1, mode="edge"),
}


def moved_as_numbers(name, found):
    """Whether ``found`` has the keys of TABLE where the move puts their numbers."""
    wanted = MOVES[name](np.arange(6).reshape(2, 3), np)
    assert found.shape == wanted.shape
    return np.array_equal(words(found), words(TABLE).reshape(6, 2)[wanted])


@pytest.mark.parametrize("name", MOVES)
def test_numpy_moves_keys_as_it_moves_their_numbers(name):
    assert moved_as_numbers(name, MOVES[name](TABLE, jnp))


def test_compiled_it_moves_them_likewise():
    names = [name for name in MOVES if name != "a mask"]  # how many it takes depends on the mask
    found = phalanx.jit(lambda x: [MOVES[name](x, jnp) for name in names])(TABLE)
    assert all(map(moved_as_numbers, names, found))


@pytest.mark.parametrize(
    "index",
    [(0, 1), 1, (slice(None), slice(None, None, 2)), (slice(None), np.array([2, 0])), MASK],
    ids=["element", "row", "strided", "positions", "mask"],
)
def test_parts_are_set(index):
    wanted = words(TABLE).copy()
    wanted[index] = words(KEY)
    assert np.array_equal(words(TABLE.at[index].set(KEY)), wanted)


def test_arithmetic_is_refused_with_advice():
    mistakes = [
        lambda: KEY + 1, lambda: 1 + KEY, lambda: KEY + KEY, lambda: -KEY, lambda: KEY < KEY,
        lambda: KEY == 1, lambda: jnp.sin(KEY), lambda: jnp.sum(TABLE), lambda: jnp.sort(TABLE),
        lambda: TABLE @ TABLE.T, lambda: KEY & KEY, lambda: jnp.isnan(KEY), lambda: KEY.view("u4"),
        lambda: jnp.where(True, KEY, 0.0), lambda: TABLE.at[0].add(KEY),
        lambda: jnp.zeros_like(KEY), lambda: jnp.ones(2, KEY.dtype), lambda: jnp.tril(TABLE),
        lambda: np.asarray(KEY), lambda: float(KEY), lambda: int(KEY), lambda: bool(KEY),
        lambda: KEY.item(), lambda: TABLE.tolist(), lambda: phalanx.jit(jnp.cos)(KEY),
    ]  # fmt: skip
    for mistake in mistakes:
        with pytest.raises(TypeError, match=r"keys are no numbers.*random\.key_data"):
            mistake()


# Functions of one array that move its elements, or copy it.
MOVERS = {
    "array", "asarray", "atleast_1d", "atleast_2d", "atleast_3d", "block", "broadcast_arrays",
    "copy", "flip", "from_dlpack", "meshgrid", "nan_to_num", "permute_dims", "ravel", "squeeze",
    "transpose",
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Explicitly requested dtype")  # by dtypes of 64 bits
def test_functions_of_numbers_refuse_keys_even_where_numbers_need_no_work():
    public = {name: x for name, x in vars(jnp).items() if callable(x) and name[0] != "_"}
    assert {name for name, function in public.items() if gives_keys(function)} == MOVERS


def gives_keys(function):
    """Whether ``function`` gives keys when it is called with one."""
    try:
        results = phalanx.tree.leaves(function(KEY))
    except (TypeError, ValueError, IndexError):
        return False
    return any(isinstance(x, phalanx.Array) and x.dtype is KEY.dtype for x in results)


def test_copies_and_pickles_are_equal():
    copies = (copy.copy(TABLE), copy.deepcopy(TABLE), pickle.loads(pickle.dumps(TABLE)))
    for made in (*copies, TABLE.copy(), jnp.array(TABLE), jnp.asarray(TABLE)):
        assert same(made, TABLE)
    assert same(jnp.stack([KEY, KEY]), jnp.array([KEY, KEY]))


def test_a_tree_has_keys_for_leaves():
    tree = {"keys": TABLE, "x": 1.0}
    assert len(phalanx.tree.leaves(tree)) == 2
    shapes = phalanx.tree.map(np.shape, tree)
    assert shapes == {"keys": (2, 3), "x": ()}


def test_words_and_back():
    assert same(random.wrap_key_data(words(TABLE)), TABLE)
    assert same(phalanx.jit(lambda k: random.wrap_key_data(random.key_data(k)))(TABLE), TABLE)
    assert random.key_impl(TABLE) == random.key_impl(words(TABLE)) == "threefry2x32"
    assert same(random.clone(TABLE), TABLE)
    refused = r"wrap_key_data: the words of key<fry> are needed, u32\[..., 2\], got key<fry>"
    with pytest.raises(TypeError, match=refused):
        random.wrap_key_data(TABLE)
    with pytest.raises(TypeError, match=r"key_data: a key is needed.*got f32\[2\]"):
        random.key_data(np.zeros(2, np.float32))


def test_words_of_which_devices_have_one_each_are_put_together():
    devices = np.array(phalanx.devices()[:4])
    if len(devices) < 4:
        pytest.skip("needs four devices")
    layout = NamedSharding(Mesh(devices.reshape(2, 2), ("a", "b")), PartitionSpec("a", "b"))
    split = phalanx.device_put(words(KEYS), layout)
    for made in (random.wrap_key_data(split), phalanx.jit(random.wrap_key_data)(split)):
        assert same(made, KEYS)
        assert same(made[5], KEYS[5])


# ---- mapping ----------------------------------------------------------------------------------


OUT_AXES = (0, 1, 2, -1, -2, -3)


@pytest.mark.parametrize("in_axes", [0, 1, -1, -2])
def test_mapped_axes_count_dimensions_of_keys(mapped, in_axes):
    def f(row):
        return (random.split(row[0], (3, 5)),) * len(OUT_AXES)

    keys = random.split(KEY, (4, 4))
    found = mapped(f, in_axes=in_axes, out_axes=OUT_AXES)(keys)
    lanes = np.moveaxis(words(keys), in_axes if in_axes >= 0 else in_axes - 1, 0)
    each = [words(random.split(random.wrap_key_data(lane[0]), (3, 5))) for lane in lanes]
    for out_axis, made in zip(OUT_AXES, found, strict=True):
        wanted = np.stack(each, out_axis if out_axis >= 0 else out_axis - 1)
        assert made.shape == wanted.shape[:-1]
        assert np.array_equal(words(made), wanted)


@pytest.mark.spmd
@pytest.mark.parametrize("lanes", [1, 5, 13])
@pytest.mark.parametrize("out_axes", [0, -1])
def test_the_pmap_law(lanes, out_axes):
    def f(key, x):
        folded = random.fold_in(key, lax.axis_index("i"))
        return random.split(folded), lax.all_gather(key, "i"), x * random.normal(folded)

    args = (random.split(KEY, lanes), np.arange(lanes, dtype=np.float32))
    check_pmap(f, args, "i", out_axes=(out_axes, out_axes, 0))


def test_the_laws_of_vmap_and_jit():
    def f(key, x):
        return jnp.where(x > 0, random.split(key), key), x * random.normal(key)

    keys = random.split(KEY, (2, 3))
    args = (keys, np.float32([1, -1, 2]))
    check_batch(lambda k, x: f(k[1], x), args, in_axes=(-1, 0), out_axes=(-1, 0))
    check_jit(f, (KEY, 2.0), order=1)


def test_lanes_choose_and_loop_for_themselves():
    turns = np.arange(8)

    def chosen(n, key):
        return lax.cond(n % 2 == 0, lambda k: random.split(k)[0], lambda k: k, key)

    def looped(n, key):
        return lax.while_loop(
            lambda c: c[0] < n, lambda c: (c[0] + 1, random.fold_in(c[1], c[0])), (0, key)
        )[1]

    for f in (chosen, looped):
        wanted = jnp.stack([f(n, k) for n, k in zip(turns, KEYS, strict=True)])
        assert same(phalanx.vmap(f)(turns, KEYS), wanted)


@pytest.mark.spmd
def test_collectives_carry_keys():
    def f(key):
        there = lax.ppermute(key, "i", [(i, (i + 1) % 8) for i in range(8)])
        return there, lax.all_gather(key, "i"), lax.all_to_all(random.split(key, 8), "i", 0, 0)

    there, gathered, exchanged = phalanx.pmap(f, axis_name="i")(KEYS)
    assert same(there, jnp.roll(KEYS, 1))
    assert same(gathered[3], KEYS)
    every = phalanx.vmap(lambda k: random.split(k, 8))(KEYS)
    assert same(exchanged, every.T)


@pytest.mark.spmd
def test_pmaps_nest_with_keys():
    def f(key):
        return random.split(key, 3)

    keys = random.split(KEY, (2, 4))
    found = phalanx.pmap(phalanx.pmap(f, out_axes=-1), out_axes=1)(keys)
    assert same(found, phalanx.vmap(phalanx.vmap(f, out_axes=-1), out_axes=1)(keys))


# ---- control flow -----------------------------------------------------------------------------


@pytest.mark.parametrize("how", [lambda f: f, phalanx.jit], ids=["eager", "jit"])
def test_loops_carry_keys(how):
    def turn(key, row):
        key, drawn = random.split(key)
        return key, (random.normal(drawn), row)

    def by_scan(key):
        return lax.scan(turn, key, KEYS)

    def by_fori(key):
        return lax.fori_loop(0, 3, lambda i, k: random.fold_in(k, i), key)

    key, (numbers, rows) = how(by_scan)(KEY)
    expected = KEY
    for i in range(8):
        expected, (number, _) = turn(expected, None)
        assert float(numbers[i]) == float(number)
    assert same(key, expected) and same(rows, KEYS)
    folded = random.fold_in(random.fold_in(random.fold_in(KEY, 0), 1), 2)
    assert same(how(by_fori)(KEY), folded)
    assert same(how(lambda k: lax.map(random.split, k))(KEYS), phalanx.vmap(random.split)(KEYS))


def test_branches_take_and_give_keys():
    f = phalanx.jit(lambda i, k: lax.switch(i, [lambda k: k, lambda k: random.split(k)[1]], k))
    assert same(f(0, KEY), KEY) and same(f(1, KEY), random.split(KEY)[1])


# ---- compilation ------------------------------------------------------------------------------


def test_jit_takes_keeps_and_gives_keys():
    assert same(phalanx.jit(lambda k: {"a": k[::-1]})(KEYS)["a"], KEYS[::-1])
    assert same(phalanx.jit(lambda i: KEYS[i])(3), KEYS[3])
    assert float(phalanx.jit(lambda: random.normal(KEY))()) == float(random.normal(KEY))


def test_keys_are_donated():
    key = random.key(9)
    data = random.key_data(key)
    new = phalanx.jit(lambda k: random.fold_in(k, 1), donate_argnums=0)(key)
    assert same(new, random.fold_in(random.key(9), 1))
    for gone in (key, data):
        with pytest.raises(phalanx.errors.DeletedArray):
            gone.block_until_ready()


def test_shapes_are_known_before_keys_are():
    like = phalanx.ShapeDtypeStruct((), KEY.dtype)
    assert phalanx.eval_shape(lambda k: random.split(k, 3), like) == (
        phalanx.ShapeDtypeStruct((3,), KEY.dtype)
    )
    compiled = phalanx.jit(random.split).lower(like).compile()
    assert same(compiled(KEY), random.split(KEY))
    with pytest.raises(TypeError, match=r"compiled with key<fry>\[\] and called with u32\[2\]"):
        compiled(random.PRNGKey(0))


# ---- devices ----------------------------------------------------------------------------------


def test_keys_are_placed(several):
    there = phalanx.device_put(TABLE, several[1])
    assert there.devices() == {several[1]} and same(there, TABLE)
    assert same(random.split(there[0, 0]), random.split(TABLE[0, 0]))
    both = phalanx.device_put_sharded([TABLE, TABLE], several[:2])
    assert same(both, jnp.stack([TABLE, TABLE]))
    assert same(phalanx.device_put_replicated(KEY, several[:2]), jnp.stack([KEY, KEY]))
    assert same(phalanx.device_get(TABLE), TABLE)


@pytest.mark.spmd
def test_each_key_is_whole_on_one_device(several):
    rows = phalanx.device_put(KEYS, several)
    mapped = phalanx.pmap(lambda k: random.fold_in(k, 1))(rows)
    turned = phalanx.jit(lambda k: k[::-1])(rows)
    for keys in (rows, mapped, turned):
        shards = keys.addressable_shards
        assert len(shards) > 1 and all(s.data.dtype is KEY.dtype for s in shards)
        parts = [s.data for s in shards if s.replica_id == 0]
        assert same(jnp.concatenate([phalanx.device_put(p, several[0]) for p in parts]), keys)
    assert same(turned, KEYS[::-1]) and same(mapped[2:5], mapped[np.arange(2, 5)])


@pytest.mark.spmd
def test_padding_is_never_seen():
    keys = random.split(KEY, 13)
    found = phalanx.pmap(lambda k: k)(keys)
    assert found.shape == (13,) and same(found, keys) and same(found[12], keys[12])


# ---- derivatives ------------------------------------------------------------------------------


def test_keys_have_no_derivative_and_are_in_nobodys_way():
    def f(x, key):
        return x * random.normal(key)

    slope = float(random.normal(KEY))
    assert float(phalanx.grad(f)(2.0, KEY)) == slope
    found = phalanx.grad(f, argnums=(0, 1), allow_int=True)(2.0, KEY)
    assert float(found[0]) == slope and found[1].dtype == dtypes.float0 and found[1].shape == ()
    _, pull = phalanx.vjp(random.split, KEY)
    (ct,) = pull(np.zeros(2, dtypes.float0))
    assert ct.dtype == dtypes.float0
    _, tangent = phalanx.jvp(f, (2.0, KEY), (1.0, np.zeros((), dtypes.float0)))
    assert float(tangent) == slope
    with pytest.raises(TypeError, match=r"key is key<fry>\[\].*allow_int=True"):
        phalanx.grad(f, argnums=1)(2.0, KEY)


def test_derivatives_of_loops_over_keys():
    def f(x, keys):
        return lax.scan(lambda c, k: (c * random.normal(k), None), x, keys)[0]

    wanted = np.prod([float(random.normal(k)) for k in KEYS])
    for g in (phalanx.grad(f), phalanx.jit(phalanx.grad(f))):
        assert float(g(1.0, KEYS)) == pytest.approx(wanted, rel=1e-5)
    lanes = phalanx.vmap(phalanx.grad(f), in_axes=(None, 0))(1.0, KEYS.reshape(2, 4))
    assert np.prod(lanes) == pytest.approx(wanted, rel=1e-5)


def test_a_branch_may_store_keys_for_the_way_back():
    def noisy(x, key):
        return jnp.sin(x) * random.normal(key)

    def f(x):
        return lax.cond(
            x > 0, lambda x: phalanx.checkpoint(noisy)(x, random.split(KEY)[0]), lambda x: x, x
        )

    wanted = np.cos(1.0) * float(random.normal(random.split(KEY)[0]))
    for g in (phalanx.grad(f), phalanx.jit(phalanx.grad(f))):
        assert float(g(1.0)) == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("rule", ["custom_jvp", "custom_vjp"])
def test_rules_take_keys(rule):
    f = getattr(phalanx, rule)(lambda x, key: x * random.normal(key))
    if rule == "custom_jvp":
        f.defjvp(lambda xs, ts: (f(*xs), 2 * ts[0] * random.normal(xs[1])))
    else:
        f.defvjp(
            lambda x, key: (f(x, key), key), lambda key, ct: (2 * ct * random.normal(key), None)
        )
    slopes = phalanx.jit(phalanx.vmap(phalanx.grad(f), in_axes=(None, 0)))(1.0, KEYS)
    assert np.allclose(slopes, [2 * float(random.normal(k)) for k in KEYS])


# ---- Python -----------------------------------------------------------------------------------


def test_python_functions_get_words(capsys):
    seen = []
    shape = phalanx.ShapeDtypeStruct((2,), "uint32")

    def look(key):
        seen.append(key)
        return key[::-1].copy()

    for how in (lambda f: f, phalanx.jit):
        found = how(lambda k: phalanx.pure_callback(look, shape, k))(KEY)
        assert np.array_equal(found, words(KEY)[::-1]) and np.array_equal(seen.pop(), words(KEY))
    phalanx.debug.print("{}", random.wrap_key_data(np.uint32([5, 7])))
    assert capsys.readouterr().out == "[5 7]\n"
    with pytest.raises(TypeError, match="a Python function cannot return keys"):
        phalanx.pure_callback(lambda k: k, phalanx.ShapeDtypeStruct((), KEY.dtype), KEY)
