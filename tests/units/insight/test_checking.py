"""``check``: what it takes, what it says, and where mistakes may hide from it."""

import itertools
import linecache
from types import SimpleNamespace

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import ShapeDtypeStruct, lax, random
from phalanx.errors import ConcretizationTypeError, UnboundAxis
from phalanx.insight.watching import checking_compiled
from phalanx.sharding import PartitionSpec as P

X = np.ones((4, 3), np.float32)


def codes(fun, *args):
    return [finding.code for finding in phalanx.check(fun)(*args)]


def drawn_twice(key):
    return random.normal(key) + random.uniform(key)  # the line of the mistake


def line_of(text):
    with open(__file__, encoding="utf-8") as lines:
        return next(n for n, line in enumerate(lines, 1) if text in line)


# ---- what is given and returned -----------------------------------------------------------------


def test_a_finding_names_the_line_and_what_to_do():
    (found,) = phalanx.check(drawn_twice)(random.key(0))
    assert (found.code, found.file) == ("P106", __file__)
    assert found.line == line_of("the line of the mistake")
    assert "random.split" in found.remedy and "second time" in found.message
    assert str(found).startswith(f"{__file__}:{found.line}: P106 the key is used")


def test_nothing_runs():
    ran = []

    def f(x):
        phalanx.debug.callback(ran.append, x)
        return x + 1

    assert codes(f, 1.0) == [] and not ran


@pytest.mark.parametrize("wrapped", [lambda f: f, phalanx.jit, phalanx.named_call])
def test_it_takes_functions_and_compiled_ones(wrapped):
    assert codes(wrapped(drawn_twice), random.key(0)) == ["P106"]


def test_static_arguments():
    def f(key, twice):
        return random.normal(key) + (random.uniform(key) if twice else 0)

    for static in ({"static_argnums": 1}, {"static_argnames": "twice"}):
        assert len(phalanx.check(f, **static)(random.key(0), True)) == 1
        assert len(phalanx.check(f, **static)(random.key(0), False)) == 0
    assert len(phalanx.check(phalanx.jit(f, static_argnums=1))(random.key(0), True)) == 1


def test_shapes_are_enough():
    key = ShapeDtypeStruct((2,), "uint32")
    assert codes(drawn_twice, key) == ["P106"]


def test_functions_of_nothing_and_empty_arrays():
    assert codes(lambda: None) == []
    assert codes(lambda x: (x.sum(), x), np.zeros((0, 3))) == []
    assert codes(phalanx.grad(lambda x: jnp.sum(jnp.where(x > 0, jnp.sqrt(x), 0))),
                 np.zeros(0, np.float32)) == ["P116"]  # fmt: skip


@pytest.mark.parametrize("fun", [3, None, X])
def test_what_is_no_function_is_refused(fun):
    with pytest.raises(TypeError, match="check"):
        phalanx.check(fun)


def test_static_arguments_are_said_once():
    with pytest.raises(TypeError, match="leave static_argnums"):
        phalanx.check(phalanx.jit(lambda x: x), static_argnums=0)


def test_what_does_not_trace_raises_what_tracing_raises():
    with pytest.raises(ConcretizationTypeError, match=r"test_checking\.py"):
        phalanx.check(lambda x: float(x))(1.0)
    with pytest.raises(UnboundAxis, match="rows"):
        phalanx.check(lambda x: lax.psum(x, "rows"))(1.0)
    with pytest.raises(TypeError, match="hello"):
        phalanx.check(lambda x: x)("hello")


# ---- lines that say that it is meant ------------------------------------------------------------


def silenced(key):
    return random.normal(key) + random.uniform(key)  # phalanx: ok P106: on purpose


def silenced_among_others(key):
    return random.normal(key) + random.uniform(key)  # phalanx: ok P103, P106


def other_code(key):
    return random.normal(key) + random.uniform(key)  # phalanx: ok P103


def no_code(key):
    return random.normal(key) + random.uniform(key)  # phalanx: ok


def test_a_comment_silences_the_codes_that_it_names():
    linecache.checkcache(__file__)
    assert codes(silenced, random.key(0)) == codes(silenced_among_others, random.key(0)) == []
    assert codes(other_code, random.key(0)) == codes(no_code, random.key(0)) == ["P106"]


# ---- where mistakes may hide --------------------------------------------------------------------

INTO = {
    "jit": phalanx.jit,
    "checkpoint": phalanx.checkpoint,
    "vmap": lambda f: lambda x: phalanx.vmap(f)(x[None]),
    "cond": lambda f: lambda x: lax.cond(x.sum() > 0, f, jnp.zeros_like, x),
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0],
    "while": lambda f: lambda x: lax.while_loop(lambda c: c.sum() > 1, f, x),
    "custom_jvp": lambda f: _with_rule(f),
    "custom_vjp": lambda f: _with_reverse_rule(f),
    "pmap": lambda f: lambda x: phalanx.pmap(f)(x[None]),
    "jit in vmap in scan": lambda f: INTO["scan"](
        lambda x: phalanx.vmap(phalanx.jit(f))(x[None])[0]
    ),
}


def _with_rule(f):
    g = phalanx.custom_jvp(f)
    g.defjvp(lambda primals, tangents: (g(*primals), tangents[0]))
    return g


def _with_reverse_rule(f):
    g = phalanx.custom_vjp(f)
    g.defvjp(lambda x: (g(x), None), lambda _, ct: (ct,))
    return g


def singular(x):
    return x * phalanx.grad(lambda x: jnp.sum(jnp.where(x > 0, jnp.sqrt(x), 0.0)))(x)


def draws(x):
    key = random.wrap_key_data(jnp.abs(x[:2]).astype("uint32"))
    return x + random.normal(key, x.shape) + random.uniform(key, x.shape)


def writes(x):
    return x.at[jnp.array([0, 0])].set(x[:2])


def promotes(x):
    return (x.astype(jnp.bfloat16) * np.float32(2)).astype(x.dtype)


@pytest.mark.parametrize("into", INTO.values(), ids=INTO)
@pytest.mark.parametrize(
    "mistake, code",
    [(singular, "P116"), (draws, "P106"), (writes, "P115"), (promotes, "P112")],
    ids=lambda x: getattr(x, "__name__", x),
)
def test_mistakes_are_found_inside_of_what_runs_functions(into, mistake, code):
    assert code in codes(into(mistake), np.ones(3, np.float32))


def twice(x):
    return lax.psum(lax.psum(x, "i"), "i")


def of_a_reduced_loss(x):
    return lax.psum(phalanx.grad(lambda w: lax.psum((w * x).sum(), "i"))(jnp.ones(3)), "i")


@pytest.mark.parametrize("into", INTO.values(), ids=INTO)
@pytest.mark.parametrize("mistake, code", [(twice, "P103"), (of_a_reduced_loss, "P104")])
def test_mistakes_between_lanes_are_found_there_too(into, mistake, code):
    lanes = phalanx.pmap(into(mistake), axis_name="i")
    assert code in codes(lanes, X)


def test_a_library_function_is_told_at_the_line_that_calls_it():
    def first(key):
        return random.normal(key, (7,))

    def second(key):
        return random.normal(key, (7,)) + random.normal(key, (7,))  # both are here

    assert codes(first, random.key(0)) == []
    (found,) = phalanx.check(second)(random.key(0))
    assert found.line == line_of("both are here")


@phalanx.custom_vjp
def summed_by_rule(x):
    return x.sum()


@phalanx.custom_jvp
def drawn_by_rule(x):
    return x


def both_reductions(x, ct):
    mean = lax.pmean(ct * x, "i")
    return (lax.psum(mean, "i"),)  # in a backward rule


def with_noise(primals, tangents):
    key = random.key(0)
    noise = random.normal(key) + random.uniform(key)  # in a rule for tangents
    return primals[0], tangents[0] * noise


summed_by_rule.defvjp(lambda x: (x.sum(), x), both_reductions)
drawn_by_rule.defjvp(with_noise)


def test_mistakes_in_rules_for_derivatives_are_told_at_their_lines():
    lanes = phalanx.pmap(phalanx.grad(phalanx.jit(summed_by_rule)), axis_name="i")
    (found,) = phalanx.check(lanes)(X[:2])
    assert (found.code, found.line) == ("P103", line_of("in a backward rule"))
    (found,) = phalanx.check(phalanx.grad(phalanx.jit(drawn_by_rule)))(1.0)
    assert (found.code, found.line) == ("P106", line_of("in a rule for tangents"))


@pytest.mark.skipif(phalanx.device_count() != 8, reason="they are for eight devices")
def test_lanes_are_told_as_they_lie():
    (found,) = phalanx.check(phalanx.pmap(jnp.sin))(np.ones(11, np.float32))
    assert "11 lanes run on 6 of 8 devices, up to 2 on each: 31%" in found.message


def test_the_number_of_lanes_is_told():
    (found,) = phalanx.check(phalanx.pmap(twice, axis_name="i"))(X[:2])
    assert "all 2 lanes" in found.message and "2 times" in found.message


def test_lanes_in_lanes():
    def inner(y):
        return lax.psum(lax.psum(y, "j"), ("i", "j"))

    outer = phalanx.pmap(lambda x: phalanx.pmap(inner, axis_name="j")(x), axis_name="i")
    (found,) = phalanx.check(outer)(X[:2])
    assert found.code == "P103" and "'j'" in found.message and "all 3 lanes" in found.message


def test_one_lane_is_enough_to_find_a_mistake():
    assert codes(phalanx.pmap(twice, axis_name="i"), X[:1]) == ["P103"]


@pytest.mark.skipif(phalanx.device_count() < 4, reason="axes need devices")
@pytest.mark.parametrize("axes", [("a",), ("a", "b")])
def test_a_mean_over_an_axis_along_which_lanes_are_alike_has_the_gradient_of_one(axes):
    def step(w, x):
        return phalanx.grad(lambda w: lax.pmean(jnp.mean((x @ w) ** 2), axes))(w)

    mesh = phalanx.make_mesh((2, 2), ("a", "b"))
    mapped = phalanx.shard_map(step, mesh=mesh, in_specs=(P(), P("a")), out_specs=P())
    assert codes(mapped, X[0], X) == []


# ---- derivatives that are infinite --------------------------------------------------------------


@pytest.mark.parametrize("inside, fun", [
    (lambda x: jnp.abs(x) < 1, jnp.arccos), (lambda x: jnp.abs(x) < 1, jnp.arcsin),
    (lambda x: jnp.abs(x) < 1, jnp.arctanh), (lambda x: x > 1, jnp.arccosh),
    (lambda x: x > -1, jnp.log1p), (lambda x: x > 0, jnp.cbrt),
])  # fmt: skip
def test_edges_of_domains_in_branches(inside, fun):
    def masked(x):
        return jnp.where(inside(x), fun(x), 0)

    def safe(x):
        return jnp.where(inside(x), fun(jnp.where(inside(x), x, 0.5)), 0)

    edges = phalanx.vmap(phalanx.grad(masked))(jnp.array([-1.0, 0.0, 1.0]))
    assert not np.isfinite(edges).all()
    assert codes(phalanx.grad(masked), 2.0) == ["P116"]
    assert codes(phalanx.grad(safe), 2.0) == []


def test_what_keeps_off_the_edges_of_domains():
    assert codes(phalanx.grad(lambda x: jnp.where(x > 0, jnp.log1p(x * x), x)), 2.0) == []
    assert codes(phalanx.grad(lambda x: jnp.where(x > 0, jnp.log1p(jnp.abs(x)), x)), 2.0) == []
    assert codes(phalanx.grad(
        lambda x: jnp.where(x > 0, jnp.log1p(x**2.0 / 3 + abs(x)), x)), 2.0) == []  # fmt: skip
    assert codes(phalanx.grad(
        lambda x: jnp.where(x > 0, jnp.arccos(jnp.clip(x, -0.9, 0.9)), x)), 2.0) == []  # fmt: skip


def norms_of_rows(x):
    return lax.scan(lambda total, x: (total + jnp.linalg.norm(x), None), 0.0, x)[0]


@pytest.mark.parametrize("fun", [
    lambda x: (x * x).sum() ** 0.5, lambda x: jnp.power(jnp.sum(x**4), 0.25),
    lambda x: jnp.sqrt(jnp.vdot(x, x)), norms_of_rows,
    lambda x: jnp.sqrt(sum(jnp.sum(row**2) for row in x)),
])  # fmt: skip
def test_roots_of_squares(fun):
    assert np.isnan(phalanx.grad(fun)(0 * X)).any()
    assert codes(phalanx.grad(fun), X) == ["P117"]


@pytest.mark.parametrize("fun", [
    lambda x: (jnp.sum(x**2) + 1e-6) ** 0.5, lambda x: jnp.sum(x**2) ** 1.5,
    lambda x: jnp.sum(x ** np.float32([0.5, 1, 2])), lambda x: jnp.sqrt(x[0] * x[1]).sum(),
])  # fmt: skip
def test_powers_that_have_derivatives(fun):
    assert codes(phalanx.grad(fun), X) == []


# ---- random keys --------------------------------------------------------------------------------


@pytest.mark.parametrize("first, second", [((2, 0), (2, 1)), ((3, 2), (3, 0))])
def test_children_of_a_key_that_is_split_twice_are_looked_at_each(first, second):
    def child(key, of):
        return random.normal(random.split(key, of[0])[of[1]])

    key = random.key(0)
    assert codes(lambda key: child(key, first) + child(key, second), key) == []
    assert codes(lambda key: child(key, first) + child(key, first), key) == ["P106"]
    assert codes(lambda key: child(key, first) + random.normal(key), key) == ["P106"]


def test_children_of_a_key_that_is_split_in_a_loop():
    key = random.key(0)

    def each(draw):
        return codes(lambda key: lax.fori_loop(0, 9, lambda i, x: x + draw(key, i), 0.0), key)

    assert each(lambda key, i: random.normal(random.split(key, 9)[i])) == []
    assert each(lambda key, i: random.normal(random.split(key, 9)[0])) == ["P106"]

    def rows(key):
        def of(child):
            return lax.scan(lambda x, key: (x + random.normal(key), None), 0.0, child)[0]

        return of(random.split(key, 3)) + of(random.split(key, 3))

    assert codes(rows, key) == ["P106"]


def masked(x):
    return jnp.where(random.bernoulli(random.key(3), 0.9, x.shape), x, 0)


def noisy(x, key=random.PRNGKey(0)):  # noqa: B008 it is a constant
    return x + random.normal(key, x.shape)


def with_lanes_number(x):
    return x + random.normal(random.fold_in(random.key(0), lax.axis_index("i")), x.shape)


def trained(x):
    w = random.normal(random.key(0), x.shape)
    return w - 0.1 * phalanx.grad(lambda w: (x @ w) ** 2)(w)


def features(x):
    w, b = random.normal(random.key(0), (3, 5)), random.uniform(random.key(1), (5,))
    return jnp.cos(x @ w + b)


def shuffled(x):
    return x[random.permutation(random.key(0), x.size)]


@pytest.mark.parametrize(
    "fun, told",
    [
        (masked, ["P107"]),
        (noisy, ["P107"]),
        (with_lanes_number, []),
        (trained, []),
        (features, []),
        (shuffled, []),
    ],
)
def test_keys_that_are_constants_in_lanes(fun, told):
    assert codes(phalanx.pmap(fun, "i"), np.ones((24, 3), np.float32)) == told


CHILDREN = {
    "first of two": lambda key: random.split(key)[0],
    "second of two": lambda key: random.split(key)[1],
    "first of three": lambda key: random.split(key, 3)[0],
    "second of three": lambda key: random.split(key, 3)[1],
    "third of three": lambda key: random.split(key, 3)[2],
    "one folded in": lambda key: random.fold_in(key, 1),
    "two folded in": lambda key: random.fold_in(key, 2),
}


def drawing(one, other):
    return lambda key: random.normal(one(key)) + random.uniform(other(key))


@pytest.mark.parametrize("key", [random.key(0), random.PRNGKey(0)], ids=["typed", "raw"])
def test_children_of_a_key_are_the_same_if_their_words_are(key):
    for one, other in itertools.combinations(CHILDREN.values(), 2):
        equal = np.array_equal(random.key_data(one(key)), random.key_data(other(key)))
        assert codes(drawing(one, other), key) == ["P106"] * equal


# ---- what is compiled meanwhile -----------------------------------------------------------------


def test_what_is_compiled_is_looked_at_once_for_each_line():
    with checking_compiled() as found:
        f = phalanx.jit(drawn_twice)
        for seed in range(3):
            f(random.key(seed))
        f(random.PRNGKey(0))
        phalanx.pmap(twice, axis_name="i")(X[:2])
    assert [code for code, _, _ in found] == ["P106", "P103"]
    phalanx.jit(drawn_twice)(random.key(0))
    assert len(found) == 2


# ---- installed libraries ------------------------------------------------------------------------

LIBRARY = """
from phalanx import jit, numpy as jnp, random

def compiled(fun):
    fast = jit(fun)
    return lambda *args: fast(*args)

def several(fast, key, x):
    for _ in range(3):
        x = fast(key, x)
    return x

def linear(key):
    first, second = random.split(key)
    return random.normal(first, (2, 2)), random.normal(second, (2,))

def twice(key):
    return random.normal(key, (2,)), random.uniform(key, (2,))

def dropout(key, x):
    return jnp.where(random.bernoulli(key, 0.5, x.shape), x, 0)

def widened(x, y):
    x = x.astype(y.dtype)
    return x * y
"""


@pytest.fixture
def library():
    names = {}
    exec(compile(LIBRARY, "/usr/lib/site-packages/library.py", "exec"), names)
    return SimpleNamespace(**names)


def test_what_a_library_does_is_told_at_the_line_of_the_user(library):
    def network(key, x):
        x = library.dropout(key, jnp.tanh(x))
        x = library.dropout(key, jnp.sin(x))  # the second layer
        return library.dropout(key, x)  # phalanx: ok P106

    (finding,) = phalanx.check(network)(random.key(0), jnp.ones(4))
    assert (finding.file, finding.line) == (__file__, line_of("the second layer"))
    assert "in library.py:21 (dropout), which this line calls" in finding.message
    assert f"after test_checking.py:{line_of('the second layer') - 1} (network)" in finding.message

    def step(x, y):
        return library.widened(x, y).sum()  # in two of its lines, and so on purpose

    with phalanx.enable_x64(True):
        assert codes(step, np.ones(3, np.float32), np.ones(3)) == []


def test_a_key_for_two_calls_of_a_library_is_told(library):
    key = random.key(0)
    with checking_compiled() as found:
        library.twice(random.key(1))  # what it does with one key is its own affair
        library.linear(key)
    assert not found
    with checking_compiled() as found:
        library.linear(key)
        library.linear(key)
    (finding,) = found.values()
    assert finding.code == "P106" and finding.file == __file__


@pytest.mark.parametrize("wrap", [phalanx.jit, lambda f: f])
def test_what_was_compiled_before_anybody_looked_is_looked_at(wrap):
    key = random.key(0)
    first = wrap(lambda key: random.normal(key, (2,)))
    second = wrap(lambda key: random.bits(key, (3,)))

    def drawn():
        return first(key), second(key)  # a second time

    drawn()
    with checking_compiled() as found:
        drawn()
    (finding,) = found.values()
    assert (finding.code, finding.line) == ("P106", line_of("# a second time"))


def test_a_key_for_each_call_of_what_a_library_compiles_is_told(library):
    def noisy(key, x):
        return x + random.normal(key, x.shape)

    key, fast, x = random.key(0), library.compiled(noisy), jnp.ones(3)
    with checking_compiled() as found:
        library.several(fast, key, x)  # in one call of it
        fast(random.key(1), x)
        fast(random.key(1), x)  # of the same, as to measure its time
    assert not found
    with checking_compiled() as found:
        for _ in range(3):
            x = fast(key, x)  # again and again
    (finding,) = found.values()
    assert (finding.code, finding.line) == ("P106", line_of("# again and again"))
