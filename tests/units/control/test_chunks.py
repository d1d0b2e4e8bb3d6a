"""Lanes a few at a time: results are those of all at once, in the memory and the work of a few."""

from functools import partial

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax, pmap, random, vmap
from phalanx.base.errors import DeletedArray
from phalanx.control.chunks import Chunks
from phalanx.control.segment import segment
from phalanx.core.axes import Axis
from phalanx.core.program import Program
from phalanx.core.types import ArrayType
from phalanx.run.runtime import backend
from phalanx.spmd.memory_kinds import target_of
from phalanx.transforms.batch import on_lanes
from phalanx.transforms.storage import peak
from tests.compare import SUMS
from tests.compare import close as close_within

close = partial(close_within, within=SUMS)

ONE = phalanx.devices()[:1]
AT_ONCE = (1, 2, 3, "all", None)
SIZE = 7  # lanes, of which neither 2 nor 3 is a divisor
several = pytest.mark.skipif(phalanx.local_device_count() < 8, reason="needs 8 devices")


def rows(*shape):
    return np.random.default_rng(len(shape)).uniform(-1, 1, shape).astype(np.float32)


# ---- memory -------------------------------------------------------------------------------------


def training_step(weights, x):
    def loss(weights):
        y = x
        for w in weights:
            y = jnp.tanh(y @ w)
        return jnp.mean(y**2)

    grads = lax.pmean(phalanx.grad(loss)(weights), "i")
    return [w - 0.1 * g for w, g in zip(weights, grads, strict=True)]


def training(at_once, **options):
    """A step that nobody has compiled yet."""

    def step(weights, x):
        return training_step(weights, x)

    return pmap(step, "i", in_axes=(None, 0), out_axes=None, devices=ONE, lanes_at_once=at_once,
                **options)  # fmt: skip


def needed(lanes, rows, at_once):
    """The bytes that a step needs besides weights and data."""
    shape = phalanx.ShapeDtypeStruct
    arguments = [shape((64, 64), np.float32)] * 4, shape((lanes, rows, 64), np.float32)
    compiled = training(at_once).lower(*arguments).compile()
    return compiled.memory_analysis().temp_size_in_bytes


def test_a_training_step_keeps_the_activations_of_lanes_at_once_and_one_gradient():
    gradient = 4 * 64 * 64 * 4
    alone = needed(1, 2048, "all")
    assert needed(8, 2048, 1) <= 1.3 * alone + 2 * gradient
    assert needed(8, 2048, 2) <= 1.3 * 2 * alone + 2 * gradient
    assert needed(8, 2048, "all") >= 6 * alone


@pytest.mark.parametrize("at_once", [1, None])
def test_sixty_four_lanes_take_the_memory_of_eight(at_once):
    """Also where nobody says how many run together, and all would keep too much alive."""
    assert needed(64, 8192, at_once) <= 1.1 * needed(8, 8192, at_once)


def test_fewer_lanes_run_at_once_where_memory_is_short(monkeypatch):
    plenty = needed(8, 512, "all")
    assert needed(8, 512, None) == plenty
    monkeypatch.setattr(backend(), "free_memory", lambda devices: plenty / 3)
    assert needed(8, 512, None) <= plenty / 3
    assert needed(8, 512, "all") == plenty  # what the user asks for stays


def test_results_are_the_same_where_memory_is_short(monkeypatch):
    arguments = [rows(64, 64)] * 4, rows(8, 512, 64)
    expected = training(None)(*arguments)
    for free in (2**21, 1):  # enough for two lanes, and for none, if the compiler is right
        monkeypatch.setattr(backend(), "free_memory", lambda devices, free=free: free)
        close(training(None)(*arguments), expected)


class Gpu:
    """A device that tells how much memory it has, or that nobody knows."""

    platform = "gpu"

    def __init__(self, size):
        self.size = size

    def memory_stats(self):
        if self.size is None:
            raise RuntimeError("MemoryStats is only supported for addressable devices")
        return {"bytes_limit": self.size}


def test_on_gpus_as_many_lanes_run_at_once_as_their_memory_holds():
    def segment(x, n):
        return lax.while_loop(lambda c: c[1] < n, lambda c: (jnp.tanh(c[0] @ x), c[1] + 1), (x, 0))

    program = phalanx.make_program(segment)(rows(256, 256), 3)
    alive = peak(program, set(program.outputs))
    for lanes, size in ((1, alive), (2, 4 * alive), (8, 16 * alive), (64, 2**40), (64, None)):
        for halvings in (0, 1):
            chunks = Chunks(None, target_of(Gpu(size), halvings))
            assert chunks(program, (True, True), 64) == max(1, lanes >> halvings)
    assert target_of(Gpu(2**40), platform="tpu").memory is None
    assert target_of(phalanx.devices("cpu")[0]).memory is None
    assert Chunks("all", target_of(Gpu(1)))(program, (True, True), 64) == 64


# ---- lanes that decide for themselves -----------------------------------------------------------


class Counted:
    """A function that is the identity, and counts how often the host is asked for it."""

    def __init__(self):
        self.calls = 0

    def __call__(self, x):
        type = phalanx.ShapeDtypeStruct((), np.float32)
        return phalanx.pure_callback(self._count, type, x, vmap_method="expand_dims")

    def _count(self, x):
        self.calls += 1
        return x


@pytest.mark.parametrize("over", [vmap, lambda f, **options: pmap(f, devices=ONE, **options)])
@pytest.mark.parametrize(("at_once", "runs"), [(1, 3 + 5 + 0 + 9), (2, 5 + 9), ("all", 9)])
def test_lanes_run_their_own_number_of_iterations(over, at_once, runs):
    step = Counted()

    def f(n, x):
        body = lambda state: (state[0] - 1, step(state[1] + 1))  # noqa: E731
        return lax.while_loop(lambda state: state[0] > 0, body, (n, x))[1]

    counts = np.int32([3, 5, 0, 9])
    close(over(f, lanes_at_once=at_once)(counts, np.zeros(4, np.float32)), counts.astype("f"))
    assert step.calls == runs


@pytest.mark.parametrize(("at_once", "runs"), [(1, (1, 3)), (2, (2, 2)), ("all", (1, 1))])
def test_lanes_run_the_branch_that_they_take(at_once, runs):
    """Several together run both, of which each takes one, where these are small."""
    first, second = Counted(), Counted()

    def f(x):
        return lax.cond(x > 2, lambda x: first(x) + 1, lambda x: second(x) - 1, x)

    x = np.arange(4, dtype=np.float32)
    close(pmap(f, devices=ONE, lanes_at_once=at_once)(x), np.where(x > 2, x + 1, x - 1))
    assert (first.calls, second.calls) == runs


def test_a_loop_that_asks_for_the_number_of_its_lane_is_the_own_of_each():
    """Nobody waits for anybody, wherever in the loop the question is."""
    step = Counted()

    @phalanx.custom_jvp
    def by_number(x):
        return x * lax.axis_index("i")

    by_number.defjvp(lambda x, t: (by_number(*x), by_number(*t)))

    def f(x):
        def body(n, y):
            y = lax.cond(n > 0, lambda y: y + lax.axis_index("i"), lambda y: y, step(y))
            inner = vmap(lambda z: z + 10 * lax.axis_index("i"), axis_name="i")(jnp.ones(2))
            return by_number(y) + inner.sum()

        def more(state):
            return state[0] < lax.axis_index("i")

        return lax.while_loop(more, lambda s: (s[0] + 1, body(*s)), (jnp.int32(0), x))

    def expected(i, x):
        for n in range(i):
            x = (x + i * (n > 0)) * i + 12
        return i, x

    counts, found = pmap(f, "i", devices=ONE, lanes_at_once=1)(rows(5))
    numbers, values = zip(*[expected(i, x) for i, x in enumerate(rows(5))], strict=True)
    close((counts, found), (np.stack(numbers), np.stack(values)))
    assert step.calls == 0 + 1 + 2 + 3 + 4


def test_of_lanes_that_differ_each_runs_alone_by_default():
    step = Counted()

    def f(n, w):
        body = lambda state: (state[0] - 1, step(jnp.sin(w * state[1]).sum()))  # noqa: E731
        return lax.while_loop(lambda state: state[0] > 0, body, (n, 0.0))[1]

    pmap(f, in_axes=(0, None), devices=ONE)(np.int32([3, 5, 0, 9]), rows(2000))
    assert step.calls == 3 + 5 + 9


def choice(f, *args):
    """How many lanes run at once in each segment by default, on a CPU."""
    where = pmap(f, "i", in_axes=(0, *[None] * (len(args) - 1)), devices=ONE).placement(*args)
    return [segment.at_once for segment in where.chunked]


def test_a_loop_over_many_numbers_of_a_lane_runs_for_each_alone_by_default():
    def walk(x):
        return lax.scan(lambda y, _: (jnp.sin(y + x), None), x, None, length=50)[0]

    def walk_by(x, w):
        return lax.scan(lambda y, _: (jnp.sin(w @ y + x), None), x, None, length=50)[0]

    assert choice(walk, rows(8, 4096)) == [1]
    assert choice(walk, rows(8, 10)) == []  # all at once fill a vector
    assert choice(walk_by, rows(8, 2048), rows(2048, 2048)) == []  # one product for all
    assert choice(lambda x: jnp.sin(walk(x)) + x, rows(8, 4096)) == [1]
    assert choice(lambda x: jnp.sin(x), rows(8, 4096)) == []


@pytest.mark.parametrize(("width", "at_once"), [(32, [1]), (256, [])])
def test_lanes_wait_for_the_slowest_where_they_share_large_weights(width, at_once):
    def f(x, w):
        def step(state):
            n, x = state
            return n - 1, jnp.tanh(w @ x)

        return lax.while_loop(lambda state: state[0] > 0, step, (x[0], x))[1]

    assert choice(f, rows(8, width), rows(width, width)) == at_once


# ---- everything composes ------------------------------------------------------------------------


def lanes_of(key, x, w):
    """Whatever lanes may do together, x: [7]."""
    i = lax.axis_index("i")
    mine = x * w + random.normal(key, x.shape) + i
    halves = [[0, 2, 4, 6], [1, 3, 5]]

    def until_all_are_small(state):
        n, y = state
        return n - 1, y / (1 + lax.pmax(jnp.abs(y), "i"))

    def chosen(y):
        return y * lax.pmean(y, "i")

    return {
        "sums": (lax.psum(mine, "i"), lax.pmean({"x": x, "sin": jnp.sin(mine)}, "i")),
        "extrema": (lax.pmax(mine, "i"), lax.pmin(jnp.int32(mine * 10), "i")),
        "each in turn": lax.psum(jnp.sin(mine - lax.psum(mine, "i")), "i") * mine,
        "gathered": lax.all_gather(mine, "i") @ w[:7],
        "scattered": lax.psum_scatter(mine, "i"),
        "exchanged": lax.all_to_all(mine, "i", 0, 0),
        "shifted": lax.ppermute(mine, "i", [(n, (n + 1) % SIZE) for n in range(SIZE - 1)]),
        "groups": lax.psum(mine, "i", axis_index_groups=halves),
        "scan": lax.scan(lambda c, r: (c + lax.psum(r * c, "i"), r - c), w[0], mine),
        "while": lax.while_loop(lambda s: s[0] > 0, until_all_are_small, (i, mine)),
        "cond": lax.cond(i > 2, chosen, lambda y: y, mine),
        "keys": random.split(key),
        "jit": phalanx.jit(lambda y: y - lax.pmean(y, "i"))(mine),
    }


ARGUMENTS = random.split(random.key(3), SIZE), rows(SIZE, 7), rows(7)


def test_results_are_those_of_all_at_once():
    plain = {"in_axes": (0, 0, None), "axis_name": "i"}
    expected = phalanx.jit(vmap(lanes_of, **plain))(*ARGUMENTS)
    ways = [pmap(lanes_of, lanes_at_once=c, devices=ONE, **plain) for c in AT_ONCE]
    ways.append(vmap(lanes_of, lanes_at_once=2, **plain))
    for found in phalanx.jit(lambda *xs: [f(*xs) for f in ways])(*ARGUMENTS):
        close(found, expected)


@several
@pytest.mark.spmd
@pytest.mark.parametrize("count", [3, 8])
def test_every_device_runs_its_lanes_a_few_at_a_time(count):
    """13 lanes: 5 on each of 3 devices, with 2 of padding; 2 on each of 7, with 1 of padding."""
    devices = phalanx.devices()[:count]

    def f(key, x, w):
        mine = x * w + random.uniform(key)
        low = lax.pmin(mine, "i")  # padding must not be seen
        return lax.psum(mine, "i"), low, lax.pmean(jnp.log(mine - low + 1), "i") * mine

    arguments = random.split(random.key(0), 13), rows(13, 4), rows(4)
    expected = phalanx.jit(vmap(f, (0, 0, None), axis_name="i"))(*arguments)
    for at_once in (1, 2):
        mapped = pmap(f, "i", in_axes=(0, 0, None), devices=devices, lanes_at_once=at_once)
        close(mapped(*arguments), expected)


def test_what_lanes_make_alike_is_there_when_they_have_run():
    """A loop gives what each lane has and a count that all share, of which more is made."""

    def f(x):
        y, count = lax.fori_loop(0, 3, lambda n, s: (s[0] * 2, s[1] + n), (x, jnp.int32(0)))
        return y * lax.fori_loop(0, 4, lambda n, c: c + n, count) + lax.psum(y, "i")

    close(pmap(f, "i", devices=ONE, lanes_at_once=1)(rows(5)), 8 * (9 * rows(5) + rows(5).sum()))


def loss(w, x):
    y = jnp.tanh(x * w)
    return lax.pmean((phalanx.checkpoint(jnp.sin)(y - lax.pmax(y, "i")) * w).sum(), "i")


@pytest.mark.parametrize("at_once", [1, 3])
def test_derivatives_inside_and_outside(at_once):
    w, x = rows(4), rows(SIZE, 4)
    axes = {"in_axes": (None, 0), "axis_name": "i"}

    def of(over, **options):
        inside = over(phalanx.value_and_grad(loss, (0, 1)), **axes, **options)
        outside = phalanx.grad(lambda w, x: over(loss, **axes, **options)(w, x).sum(), (0, 1))
        forward = lambda w, x: phalanx.jvp(outside, (w, x), (w, x))  # noqa: E731
        return phalanx.jit(lambda w, x: (inside(w, x), forward(w, x)))(w, x)

    close(of(pmap, devices=ONE, lanes_at_once=at_once), of(vmap))


def test_axes_in_axes():
    """Each has a number of its own; sums go over one and over both."""

    def f(x, w):
        both = lax.psum(x * w, ("i", "j"))
        return jnp.sin(x - lax.pmean(x, "j")) * both + lax.psum(x, "i")

    def nested(outer, inner):
        along_j = pmap(f, "j", in_axes=(0, None), lanes_at_once=inner)
        return pmap(along_j, "i", in_axes=(0, None), lanes_at_once=outer, devices=ONE)

    x, w = rows(5, 4), np.float32(0.3)
    expected = vmap(vmap(f, (0, None), axis_name="j"), (0, None), axis_name="i")(x, w)
    ways = [nested(a, b) for a, b in [(1, 1), (1, "all"), ("all", 1), (2, 3), (1, None)]]
    for found in phalanx.jit(lambda *xs: [f(*xs) for f in ways])(x, w):
        close(found, expected)


@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_effects_are_in_the_order_of_lanes(at_once, capsys):
    def f(x):
        phalanx.debug.print("here {}", x, ordered=True)
        total = lax.psum(x, "i")
        phalanx.debug.print("{} of {}", x, total, ordered=True)
        return total

    pmap(f, "i", devices=ONE, lanes_at_once=at_once)(np.arange(5))
    phalanx.effects_barrier()
    said = [line.split("] ")[-1].strip() for line in capsys.readouterr().out.splitlines()]
    assert said == [f"here {i}" for i in range(5)] + [f"{i} of 10" for i in range(5)]


def test_a_donated_argument_gives_its_memory():
    x = rows(3, 2, 8)
    weights = [phalanx.device_put(rows(8, 8))]
    expected = vmap(training_step, (None, 0), None, axis_name="i")(weights, x)
    close(training(1, donate_argnums=0)(weights, x), expected)
    with pytest.raises(DeletedArray, match="donated"):
        np.asarray(weights[0])


@pytest.mark.parametrize("size", [0, 1])
def test_no_lane_and_one(size):
    def f(x):
        return x - lax.psum(x, "i"), lax.scan(lambda c, r: (c + r, c), 0.0, x)

    x = rows(size, 3)
    expected = vmap(f, axis_name="i")(x)
    close(vmap(f, axis_name="i", lanes_at_once=2)(x), expected)
    if size:
        close(pmap(f, "i", devices=ONE, lanes_at_once=1)(x), expected)


# ---- the order of additions ---------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16], ids=["bfloat16", "float16"])
def test_long_sums_of_few_bits_are_as_accurate_as_all_at_once(dtype):
    """One after the other in few bits, ones would no longer count beyond 256, or 2048."""
    x = jnp.ones((4000, 3), dtype)
    w = jnp.ones(3, dtype)

    def f(w, x):
        return lax.psum(x, "i"), lax.psum(phalanx.grad(lambda w: (w * x).sum())(w), "i")

    ways = [vmap(f, (None, 0), None, axis_name="i", lanes_at_once=c) for c in (1, 7, "all")]
    for total, slope in phalanx.jit(lambda w, x: [f(w, x) for f in ways])(w, x):
        assert total.dtype == slope.dtype == dtype
        np.testing.assert_array_equal(np.float64(total), np.float64(dtype(4000)))
        np.testing.assert_array_equal(np.float64(slope), np.float64(dtype(4000)))


def test_sums_of_integers_and_extrema_are_the_same_for_every_number():
    def f(x):
        return lax.psum(jnp.int32(x * 100), "i"), lax.pmax(x, "i"), jnp.sin(x) * x

    x = rows(SIZE, 5)
    ways = [pmap(f, "i", devices=ONE, lanes_at_once=c) for c in AT_ONCE]
    first, *others = phalanx.jit(lambda x: [f(x) for f in ways])(x)
    for found in others:
        for a, b in zip(found, first, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("at_once", [1, 2, 5])
def test_a_segment_of_which_nothing_differs_between_lanes(at_once):
    """So it is where a loop is looked at before it is known what it carries differs."""
    x = np.arange(3, dtype=np.float32)
    ends = phalanx.make_program(lambda x: (jnp.sin(x), lax.psum(x * 2, "i")), axis_env=[("i", 5)])
    params = {"program": ends(x), "of": "i", "at_once": at_once}
    whole = Program.of_one(segment, [ArrayType((3,), x.dtype)], params, "ends")
    kept, total = on_lanes(whole, Axis("i", 5), [jnp.asarray(x)], [None])
    np.testing.assert_allclose(kept, np.tile(np.sin(x), (5, 1)), rtol=1e-6)
    np.testing.assert_allclose(total, np.tile(10 * x, (5, 1)), rtol=1e-6)
