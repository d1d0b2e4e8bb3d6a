"""Tables of rules and the operations of lax: what is registered for them counts, or is refused."""

import jax
import jax.interpreters.ad as their_ad
import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx.compat import operations
from phalanx.compat.core import Primitive
from phalanx.compat.interpreters import ad, batching, mlir
from phalanx.compat.refused import NotOffered, not_offered

OPERATIONS = {name: getattr(operations, name) for name in dir(operations)}


def rule(*args, **params):
    """What would have been found out by a wrong number."""
    raise AssertionError("a rule that was refused is used")


def both(prim):
    ad.defbilinear(prim, rule, rule)


TABLES = {
    "primitive_jvps": ad.primitive_jvps,
    "primitive_transposes": ad.primitive_transposes,
    "primitive_batchers": batching.primitive_batchers,
    "axis_primitive_batchers": batching.axis_primitive_batchers,
    "fancy_primitive_batchers": batching.fancy_primitive_batchers,
}
WAYS = {
    "defjvp": lambda p: ad.defjvp(p, rule),
    "defjvp2": lambda p: ad.defjvp2(p, rule),
    "deflinear": lambda p: ad.deflinear(p, rule),
    "deflinear2": lambda p: ad.deflinear2(p, rule),
    "defbilinear": both,
    "defvectorized": batching.defvectorized,
    "defbroadcasting": batching.defbroadcasting,
    "defreducer": batching.defreducer,
    "register_lowering": lambda p: mlir.register_lowering(p, rule),
    "for a platform": lambda p: mlir.register_lowering(p, mlir.lower_fun(rule), platform="cpu"),
    "def_impl": lambda p: p.def_impl(rule),
    "def_abstract_eval": lambda p: p.def_abstract_eval(rule),
    "def_effectful_abstract_eval": lambda p: p.def_effectful_abstract_eval(rule),
    **{
        f"{attribute} of it": lambda p, name=attribute: setattr(p, name, rule)
        for attribute in ("impl", "abstract_eval", "bind", "multiple_results", "name")
    },
    **{
        f"{name}[p] = rule": lambda p, table=table: table.__setitem__(p, rule)
        for name, table in TABLES.items()
    },
    **{
        f"{name}.update": lambda p, table=table: table.update({p: rule})
        for name, table in TABLES.items()
    },
    **{
        f"del {name}[p]": lambda p, table=table: table.__delitem__(p)
        for name, table in TABLES.items()
    },
}


@pytest.mark.parametrize("way", WAYS)
def test_what_is_said_of_an_operation_of_lax_is_refused_at_the_line_that_says_it(way):
    for name, prim in OPERATIONS.items():
        if "primitive_transposes" in way and prim not in ad.primitive_transposes:
            continue  # one of another may be added
        with pytest.raises(NotImplementedError, match="cannot be replaced") as raised:
            WAYS[way](prim)
        assert prim.name in str(raised.value) and "test_rules_of_lax.py:" in str(raised.value), name


def test_operations_of_lax_may_carry_what_others_put_there():
    prim = OPERATIONS["sin_p"]
    prim.seen_by_others = True
    assert prim.seen_by_others
    del prim.seen_by_others


X, Y = np.float32(0.75), np.float32(-2.0)
READ = {
    "sin_p": ([X], {"accuracy": None}),
    "mul_p": ([X, Y], {}),
    "div_p": ([X, Y], {}),
    "neg_p": ([X], {}),
    "floor_p": ([X], {}),
    "dot_general_p": (
        [np.ones((2, 3), np.float32), np.arange(6, dtype=np.float32).reshape(3, 2)],
        {
            "dimension_numbers": (((1,), (0,)), ((), ())),
            "precision": None,
            "preferred_element_type": np.dtype("float32"),
            "out_sharding": None,
        },
    ),
}


def their_operation(name):
    return getattr(jax.lax, name)


@pytest.mark.parametrize("name", READ)
def test_rules_of_lax_can_be_read_and_called(name):
    operands, params = READ[name]
    prim, theirs = OPERATIONS[name], their_operation(name)
    tangents = [np.cos(x) for x in operands]
    got = ad.primitive_jvps[prim](operands, tangents, **params)
    wanted = their_ad.primitive_jvps[theirs](operands, tangents, **params)
    for a, b in zip(got, wanted, strict=True):
        if isinstance(b, their_ad.Zero):
            assert isinstance(a, ad.Zero) and a.aval.shape == b.aval.shape
        else:
            np.testing.assert_allclose(a, b, rtol=1e-6)
    given = [jnp.stack([x, 2 * x]) for x in operands]
    out, dim = batching.primitive_batchers[prim](given, [0] * len(given), **params)
    each = [prim.bind(*xs, **params) for xs in zip(*given, strict=True)]
    np.testing.assert_allclose(jnp.moveaxis(out, dim, 0), each, rtol=1e-6)


def test_a_tangent_may_be_zero_in_a_rule_that_is_read():
    zero = ad.Zero(phalanx.typeof(Y))
    out, tangent = ad.primitive_jvps[OPERATIONS["mul_p"]]((X, Y), (X, zero))
    assert (out, tangent) == (X * Y, X * Y)
    assert isinstance(ad.primitive_jvps[OPERATIONS["mul_p"]]((X, Y), (zero, zero))[1], ad.Zero)


def test_a_transpose_that_is_read():
    unknown = ad.UndefinedPrimal(phalanx.typeof(X))
    back = ad.get_primitive_transpose(OPERATIONS["mul_p"])(jnp.float32(3.0), unknown, Y)
    assert (back[0], back[1]) == (-6.0, None)


def test_tables_know_which_operations_have_rules():
    sin, neg, dot = (OPERATIONS[f"{name}_p"] for name in ("sin", "neg", "dot_general"))
    for ours, theirs in (
        (ad.primitive_jvps, their_ad.primitive_jvps),
        (ad.primitive_transposes, their_ad.primitive_transposes),
    ):
        for name, op in (("sin_p", sin), ("neg_p", neg), ("dot_general_p", dot)):
            assert (op in ours) == (their_operation(name) in theirs)
            assert (op in [*ours]) == (op in ours) == (ours.get(op) is not None)
        assert len(ours) == len([*ours]) == len(ours.items())


def test_rules_of_operations_of_others_come_and_go():
    mine = Primitive("mine")
    for table in TABLES.values():
        table[mine] = rule
        assert table[mine] is rule and mine in table and mine in [*table]
        assert table.pop(mine) is rule
        assert mine not in table and table.get(mine) is None
        with pytest.raises(KeyError):
            table[mine]


def test_a_rule_of_ours_may_serve_an_operation_of_others():
    mine = Primitive("like_sine")
    mine.def_impl(jnp.sin)
    mine.def_abstract_eval(lambda x: x)
    ad.primitive_jvps[mine] = ad.primitive_jvps[OPERATIONS["sin_p"]]
    np.testing.assert_allclose(phalanx.grad(mine.bind)(X), np.cos(X), rtol=1e-6)


class Doubling(Primitive):
    """As libraries write them: what it computes and gives are methods."""

    multiple_results = True

    def impl(self, x, *, times):
        return [x * times, x + times]

    def abstract_eval(self, x, *, times):
        return [x, x], set()


def test_a_class_of_operations_may_have_its_rules_as_methods():
    prim = Doubling("doubling")
    for f in (prim.bind, phalanx.jit(prim.bind, static_argnames="times")):
        assert f(X, times=2.0) == [1.5, 2.75]
    assert prim.abstract_eval(phalanx.typeof(X), times=2.0) == ([phalanx.typeof(X)] * 2, set())


def test_an_operation_of_lax_that_programs_never_have_says_so():
    with pytest.raises(NotImplementedError, match=r"log2_p: programs .*test_rules_of_lax.py"):
        OPERATIONS["log2_p"].bind(X)


def test_tables_that_are_not_offered_say_so_when_something_is_put_there():
    table = not_offered("jax.interpreters.partial_eval", "dce_rules")
    assert isinstance(table, NotOffered)
    for use in (lambda: table.__setitem__(1, 2), lambda: table.__delitem__(1), lambda: table[1]):
        with pytest.raises(NotImplementedError, match="dce_rules is not offered: use"):
            use()


def test_a_transpose_counts_where_an_operation_has_none():
    """As lineax adds that of stop_gradient."""
    stop = OPERATIONS["stop_gradient_p"]

    def f(x):
        return 3 * phalanx.lax.stop_gradient(x)

    for _ in range(2):  # modules may be loaded again
        ad.primitive_transposes[stop] = lambda ct, x: (5 * ct,)
    try:
        assert stop in ad.primitive_transposes
        assert phalanx.linear_transpose(f, X)(jnp.float32(2.0)) == (30,)
        assert phalanx.grad(f)(X) == 0
    finally:
        del ad.primitive_transposes[stop]
    assert stop not in ad.primitive_transposes
    with pytest.raises(phalanx.errors.MissingRule, match="stop_gradient"):
        phalanx.linear_transpose(f, X)(jnp.float32(2.0))
