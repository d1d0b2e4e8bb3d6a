"""What is kept between calls: never another function's result, and never more than a bound."""

import collections
import gc
import random

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import tree, tree_util
from phalanx.core.types import ArrayType
from phalanx.run import array
from phalanx.run.calls import calls
from phalanx.spmd.sharding import Sharding
from phalanx.xla import XlaBackend

X = jnp.arange(3.0)
Pair = collections.namedtuple("Pair", "a b")


class Child(Pair):
    pass


Twin = collections.namedtuple("Twin", "a b")


@tree_util.register_pytree_node_class
class Boxed:
    """A tree with one leaf that passes all else on to it, as wrappers of parameters do."""

    def __init__(self, value):
        self.value = value

    def __getattr__(self, name):
        if name == "value":
            raise AttributeError(name)
        return getattr(self.value, name)

    def tree_flatten(self):
        return (self.value,), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


# ---- never wrong: the structure of arguments ----------------------------------------------------

LIKE = {
    "dict": {"a": X, "b": X + 1},
    "dict in another order": {"b": X + 1, "a": X},
    "OrderedDict": collections.OrderedDict(a=X, b=X + 1),
    "OrderedDict in another order": collections.OrderedDict(b=X + 1, a=X),
    "defaultdict of int": collections.defaultdict(int, a=X, b=X + 1),
    "defaultdict of list": collections.defaultdict(list, a=X, b=X + 1),
    "tuple": (X, X + 1),
    "list": [X, X + 1],
    "namedtuple": Pair(X, X + 1),
    "subclass of namedtuple": Child(X, X + 1),
    "namedtuple of the same name": collections.namedtuple("Pair", "a b")(X, X + 1),
    "other namedtuple": Twin(X, X + 1),
    "one": X,
    "a box": Boxed(X),
    "a box in a list": [Boxed(X)],
}  # fmt: skip


def told(t):
    """All that a function can tell of the structure of its argument."""
    if isinstance(t, dict):
        inner = [(k, told(v)) for k, v in sorted(t.items())]
        return type(t), inner, getattr(t, "default_factory", None)
    if isinstance(t, (tuple, list)):
        return type(t), [told(v) for v in t]
    return (Boxed, told(t.value)) if isinstance(t, Boxed) else "leaf"


@pytest.mark.parametrize("make", [phalanx.jit, lambda f: phalanx.pmap(f)], ids=["jit", "pmap"])
@pytest.mark.parametrize("place", [lambda t: (t,), lambda t: ([X, {"t": (t, X)}], X)])
@pytest.mark.parametrize("first", LIKE)
def test_structures_that_look_alike_are_told_apart(make, place, first):
    """Whatever came before, and however often, a function sees the structure that it is given."""
    if make is not phalanx.jit:
        first_and = [first, "dict", "OrderedDict", "list", "a box"]
    else:
        first_and = list(LIKE)
    for second in first_and:
        seen = []

        @make
        def f(*args):
            seen.append(told(args))  # noqa: B023
            return tree.map(lambda x: x * 2, args)

        for name in (first, first, second, second, first):
            args = place(LIKE[name])
            out = f(*args)
            assert told(out) == told(args)
            if told(args) not in seen:
                raise AssertionError(f"{name} was taken for {first} or {second}")


def test_a_mapping_is_told_from_another_with_the_same_repr():
    @tree_util.register_pytree_node_class
    class Axes:
        """A tree of axes that says little of itself."""

        def __init__(self, *entries):
            self.entries = entries

        def tree_flatten(self):
            return self.entries, None

        @classmethod
        def tree_unflatten(cls, _, children):
            return cls(*children)

        def __repr__(self):
            return "Axes"

    def f(t):
        return t.entries[0].sum() + 10 * t.entries[1].sum()

    x = np.arange(4.0, dtype=np.float32).reshape(2, 2)
    t = Axes(x, x)
    for make in (phalanx.pmap, phalanx.vmap):
        rows = make(f, in_axes=(Axes(0, 0),))(t)
        columns = make(f, in_axes=(Axes(0, 1),))(t)
        np.testing.assert_array_equal(rows, [11, 55])
        np.testing.assert_array_equal(columns, [21, 45])

    def g(x):
        return Axes(x, x)

    for axes in (Axes(0, 1), Axes(1, 0), Axes(1, 1)):
        out = phalanx.pmap(g, out_axes=axes)(x)
        for got, axis in zip(out.entries, axes.entries, strict=True):
            np.testing.assert_array_equal(got, x.T if axis else x)


@pytest.mark.parametrize(
    "first, second",
    [(0.0, -0.0), (-0.0, 0.0), ((0.0,), (-0.0,)), (1, True), ((1,), (True,)), ((1,), (1.0,)),
     (0j, -0j), (complex(0, -0.0), 0j), (np.float32(0), np.float32(-0.0)), (((2,),), ((2.0,),))],
)  # fmt: skip
def test_static_arguments_that_are_equal_but_not_the_same_are_told_apart(first, second):
    def number(n):
        return number(n[0]) if isinstance(n, tuple) else n

    def f(n, x):
        return x * number(n)

    x = jnp.array([1, 2])
    jitted = phalanx.jit(f, static_argnums=0)
    mapped = phalanx.pmap(f, static_broadcasted_argnums=0)
    for n in (first, second, first):
        for got in (jitted(n, x), mapped(n, x)):
            wanted = f(n, x)
            assert got.dtype == wanted.dtype
            assert np.asarray(got).tobytes() == np.asarray(wanted).tobytes()


def test_a_static_nan_is_found_again():
    traced = []
    f = phalanx.jit(lambda n, x: traced.append(n) or x, static_argnums=0)
    for _ in range(3):
        f(float("nan"), X)
    assert len(traced) == 1


def test_compiler_options_are_told_apart_by_value():
    lowered = phalanx.jit(lambda x: x + 1).lower(X)
    options = [{}, {"xla_cpu_enable_fast_math": True}, {"xla_cpu_enable_fast_math": False}]
    made = [lowered.compile(o).runtime_executable() for o in options]
    assert len({id(e) for e in made}) == 3
    again = [lowered.compile(dict(o)).runtime_executable() for o in options]
    assert [a is b for a, b in zip(made, again, strict=True)] == [True] * 3
    for bad in ({"xla_cpu_enable_fast_math": 1}, {"xla_cpu_enable_fast_math": [True]}):
        with pytest.raises(ValueError, match="xla_cpu_enable_fast_math"):
            lowered.compile(bad)


# ---- never more than a bound --------------------------------------------------------------------


def test_types_signatures_and_shardings_that_nobody_holds_go():
    tables = ArrayType._interned, array.Signature._interned, Sharding._interned
    device = phalanx.devices()[0]
    most = max(table.limit for table in tables)  # signatures hold types and shardings
    kept = ArrayType((7, 7, 7), np.dtype("float32"))
    before = [len(table._held) for table in tables]  # what others hold
    for i in range(30_000):
        kind = ArrayType((i, 3), np.dtype("float32"))
        where = Sharding(("a", "b", f"c{i}"))
        array.Signature.of(kind, where)
        assert kind.shape == (i, 3)
    for table, others in zip(tables, before, strict=True):
        assert len(table) <= table.limit
        assert len(table._held) <= 2 * most + others
    assert ArrayType((7, 7, 7), np.dtype("float32")) is kept
    free = jnp.zeros(3)
    assert free.sharding is Sharding((device,)) and not free.committed


def test_the_programs_of_one_function_are_bounded_and_all_calls_are_right(monkeypatch):
    monkeypatch.setattr(phalanx.api.dispatch, "CAPACITY", 4)
    f = phalanx.jit(lambda x: x * 2)
    g = phalanx.pmap(lambda x: x * 3)
    h = phalanx.jit(lambda t: [t[0] + t[0]])
    for attempt in range(2):
        for n in range(1, 20):
            x = np.arange(n, dtype=np.float32)
            np.testing.assert_array_equal(f(x), x * 2)
            np.testing.assert_array_equal(h([x])[0] if attempt else h((x,))[0], x + x)
            np.testing.assert_array_equal(g(x), x * 3)


def test_what_is_in_use_is_not_compiled_again_while_others_pass(monkeypatch):
    compiled = []
    original = XlaBackend.compile

    def compile(lowered, options=None):
        compiled.append(lowered.name)
        return original(lowered, options)

    monkeypatch.setattr(phalanx.api.dispatch, "CAPACITY", 4)
    f = phalanx.jit(lambda x: x * 2)
    others = [jnp.zeros(n) for n in range(4, 24)]
    f(X)
    monkeypatch.setattr(XlaBackend, "compile", staticmethod(compile))
    for other in others:
        f(other), f(X)
    assert len(compiled) == len(others)
    f(others[0])
    assert len(compiled) == len(others) + 1


def test_eager_operations_and_scalars_are_bounded():
    for i in range(5000):
        jnp.asarray(float(i) + 0.25)
    assert len(array._scalars) <= array._scalars.limit
    assert calls.limit >= len(calls)


# ---- nothing of the process's -------------------------------------------------------------------


def test_the_random_numbers_of_the_user_are_left_alone(tmp_path):
    phalanx.config.update("compilation_cache_max_size", 1 << 30)
    state = random.getstate()
    before = np.random.get_state()[1].tobytes()
    phalanx.config.update("compilation_cache_dir", str(tmp_path))
    try:
        phalanx.jit(lambda x: x * 3 - 1)(X)
        assert list(tmp_path.iterdir())
    finally:
        phalanx.config.update("compilation_cache_dir", None)
    assert random.getstate() == state
    assert np.random.get_state()[1].tobytes() == before
    gc.collect()


@pytest.mark.parametrize("make", [phalanx.jit, phalanx.pmap], ids=["jit", "pmap"])
def test_the_order_of_keys_that_a_function_sees_does_not_depend_on_the_first_call(make):
    one, other = {"b": X, "a": {"z": X, "y": X}}, {"a": {"y": X, "z": X}, "b": X}
    orders = []

    def seen(t):
        orders.append((list(t), list(t["a"])))

    for trees in ([one, other], [other, one]):
        fresh = make(lambda t: seen(t))
        for t in trees:
            fresh(t)
    assert orders == 2 * [(["a", "b"], ["y", "z"])]


@pytest.mark.parametrize("transform", [phalanx.jit, phalanx.pmap])
def test_functions_tell_for_how_many_kinds_of_arguments_there_are_programs(transform):
    twice = transform(lambda d: d["x"] * 2)
    assert twice._cache_size() == 0
    for dtype in np.float32, np.int32, np.float32:
        twice({"x": np.ones(2, dtype)})
    assert twice._cache_size() == 2
    twice.clear_cache()
    assert twice._cache_size() == 0
