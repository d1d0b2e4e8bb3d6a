"""``check``: what it takes, what it says, and where mistakes may hide from it."""

import linecache

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import ShapeDtypeStruct, lax, random
from phalanx.errors import ConcretizationTypeError, UnboundAxis
from phalanx.sharding import PartitionSpec as P
from tests.units.insight.checks.finding import codes, line_of

X = np.ones((4, 3), np.float32)


def drawn_twice(key):
    return random.normal(key) + random.uniform(key)  # the line of the mistake


# ---- what is given and returned -----------------------------------------------------------------


def test_a_finding_names_the_line_and_what_to_do():
    (found,) = phalanx.check(drawn_twice)(random.key(0))
    assert (found.code, found.file) == ("P106", __file__)
    assert found.line == line_of("the line of the mistake", __file__)
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
    with pytest.raises(ConcretizationTypeError, match=r"test_check\.py"):
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
    assert found.line == line_of("both are here", __file__)


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
    assert (found.code, found.line) == ("P103", line_of("in a backward rule", __file__))
    (found,) = phalanx.check(phalanx.grad(phalanx.jit(drawn_by_rule)))(1.0)
    assert (found.code, found.line) == ("P106", line_of("in a rule for tangents", __file__))


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
