"""Whatever changes in what a function can reach: loops and branches do what it does now.

Each case is a function of one number, with a way to change what it gives. A loop that ran it
before must give what Python gives afterwards.
"""

import array
import functools
import gc
import weakref
from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

import phalanx as px
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.base.recent import Recent
from phalanx.core.program import Program
from phalanx.lax import bodies

XS = np.float32([1, 2])
CASES = {}


def case(make):
    CASES[make.__name__] = make
    return make


@case
def name_bound_again():
    w = jnp.float32(2)

    def change():
        nonlocal w
        w = jnp.float32(3)

    return lambda x: w * x, change


@case
def name_bound_to_another_number():
    w = 2

    def change():
        nonlocal w
        w = 3

    return lambda x: w * x, change


@case
def name_bound_to_the_other_zero():
    w = 0.0

    def change():
        nonlocal w
        w = -0.0

    return lambda x: x / (w * x), change


@case
def name_of_a_function_that_it_calls():
    w = 2
    inner = lambda x: w * x  # noqa: E731

    def change():
        nonlocal w
        w = 3

    return lambda x: inner(x) + 1, change


@case
def default():
    def f(x, w=2):
        return w * x

    return f, lambda: setattr(f, "__defaults__", (3,))


@case
def default_by_keyword():
    def f(x, *, w=2):
        return w * x

    return f, lambda: f.__kwdefaults__.update(w=3)


@case
def attribute_of_the_function():
    def f(x):
        return f.w * x

    f.w = 2
    return f, lambda: setattr(f, "w", 3)


@case
def code():
    def f(x):
        return 2 * x

    return f, lambda: setattr(f, "__code__", (lambda x: 3 * x).__code__)


@case
def argument_of_a_partial():
    f = functools.partial(lambda x, w: w * x, w=2)
    return f, lambda: f.keywords.update(w=3)


@case
def element_of_a_list():
    ws = [jnp.float32(2), jnp.float32(3)]
    return lambda x: ws[0] * x, lambda: ws.reverse()


@case
def length_of_a_list():
    ws = [2]
    return lambda x: len(ws) * x, lambda: ws.append(2)


@case
def value_in_a_dict():
    ws = {"w": {"v": (2,)}}
    return lambda x: ws["w"]["v"][0] * x, lambda: ws["w"].update(v=(3,))


@case
def key_of_a_dict():
    ws = {"v": 2}

    def change():
        ws["w"] = ws.pop("v")

    return lambda x: ("v" in ws) * x, change


@case
def order_of_a_dict():
    ws = OrderedDict(v=2, w=3)
    return lambda x: next(iter(ws.values())) * x, lambda: ws.move_to_end("v")


@case
def default_of_a_dict():
    ws = defaultdict(lambda: 2)
    return lambda x: ws.default_factory() * x, lambda: setattr(ws, "default_factory", lambda: 3)


@case
def element_of_a_set():
    ws = {2}
    return lambda x: (3 in ws) * x, lambda: ws.add(3)


@case
def element_of_a_queue():
    ws = deque([2, 3])
    return lambda x: ws[0] * x, lambda: ws.rotate(1)


@case
def same_list_twice():
    a = [2]
    pair = [a, a]

    def f(x):
        return (pair[0] is pair[1]) * x

    return f, lambda: pair.__setitem__(1, [2])


class Plain:
    def __init__(self, **attributes):
        vars(self).update(attributes)

    def scaled(self, x):
        return self.w * x


@case
def attribute():
    model = Plain(w=2)
    return lambda x: model.w * x, lambda: setattr(model, "w", 3)


@case
def name_of_an_attribute():
    model = Plain(w=2)

    def change():
        del model.w
        model.v = 2

    return lambda x: hasattr(model, "v") * x, change


@case
def attribute_of_a_namespace():
    model = SimpleNamespace(w=2)
    return lambda x: model.w * x, lambda: setattr(model, "w", 3)


@case
def attribute_of_self():
    model = Plain(w=2)
    return model.scaled, lambda: setattr(model, "w", 3)


@case
def class_of_an_object():
    class Other(Plain):
        w = 3

    model = Plain()
    Plain.w = 2
    return model.scaled, lambda: setattr(model, "__class__", Other)


@dataclass
class Data:
    w: object


@case
def field_of_a_dataclass():
    model = Data([2])
    return lambda x: model.w[0] * x, lambda: model.w.__setitem__(0, 3)


class Slotted:
    __slots__ = ("v", "w")


@case
def slot():
    model = Slotted()
    model.w = 2
    return lambda x: model.w * x, lambda: setattr(model, "w", 3)


@case
def name_of_a_slot():
    model = Slotted()
    model.v = 2

    def change():
        del model.v
        model.w = 2

    return lambda x: hasattr(model, "v") * x, change


class Settings(dict):
    pass


@case
def attribute_of_a_dict():
    settings = Settings(w=2)
    settings.v = 2
    return lambda x: settings.v * x, lambda: setattr(settings, "v", 3)


@case
def value_in_a_class_of_dicts():
    settings = Settings(w=2)
    return lambda x: settings["w"] * x, lambda: settings.update(w=3)


@case
def attribute_in_a_named_tuple():
    pair = namedtuple("Pair", "model")(Plain(w=2))
    return lambda x: pair.model.w * x, lambda: setattr(pair.model, "w", 3)


@case
def elements_of_a_numpy_array():
    w = np.float32([2, 2])
    return lambda x: w.sum() * x, lambda: w.fill(3)


@case
def elements_of_a_large_numpy_array():
    w = np.ones(100_000, np.float32)
    return lambda x: w[-1] * x, lambda: w.fill(3)


@case
def mask_of_a_numpy_array():
    w = np.ma.masked_array(np.float32([2, 3]), [False, True])
    return lambda x: np.float32(w.sum()) * x, lambda: w.mask.fill(False)


class Proxy:
    """Shows the attributes of another object as its own, as objects made on first use do."""

    def __init__(self, shown):
        object.__setattr__(self, "shown", [shown])

    def __getattribute__(self, name):
        return getattr(object.__getattribute__(self, "shown")[0], name)


@case
def object_behind_a_proxy():
    proxy = Proxy(Plain(w=2))
    shown = object.__getattribute__(proxy, "shown")
    return lambda x: proxy.w * x, lambda: shown.__setitem__(0, Plain(w=3))


@case
def object_in_a_numpy_array():
    w = np.array([[2]], object)
    return lambda x: w[0, 0] * x, lambda: w.fill(3)


@case
def elements_of_an_array_of_python():
    w = array.array("f", [2])
    return lambda x: w[0] * x, lambda: w.__setitem__(0, 3)


@case
def state_of_an_iterator():
    words = iter([2, 3, 4, 5, 6, 7, 8, 9])
    now = [words]
    return lambda x: (now[0] is words) * x, lambda: now.__setitem__(0, iter([3]))


@case
def method_of_a_list():
    ws = [2, 2]
    count = ws.count
    return lambda x: count(2) * x, lambda: ws.append(2)


@case
def object_that_is_a_key():
    first, second = object(), object()
    table = {first: 2, second: 3}
    key = [first]
    return lambda x: table[key[0]] * x, lambda: key.__setitem__(0, second)


@case
def one_of_too_many():
    ws = [[i] for i in range(10_000)]
    return lambda x: ws[0][0] * x, lambda: ws[0].__setitem__(0, 3)


RUN = {
    "map": lambda f: lax.map(f, XS),
    "scan": lambda f: lax.scan(Carrying(f), np.float32(0), XS)[1],
    "cond": lambda f: jnp.stack([lax.cond(x > 0, f, f, x) for x in jnp.asarray(XS)]),
}


@dataclass(eq=False)
class Carrying:
    f: object

    def __call__(self, c, x):
        return c, self.f(x)


@pytest.mark.parametrize("run", ["map", "cond"])
@pytest.mark.parametrize("case", CASES)
def test_a_change_is_seen(case, run):
    f, change = CASES[case]()
    with np.errstate(all="ignore"):
        for _ in range(2):
            np.testing.assert_array_equal(RUN[run](f), np.stack([f(x) for x in XS]))
        change()
        np.testing.assert_array_equal(RUN[run](f), np.stack([f(x) for x in XS]))


def test_a_name_bound_again_and_again():
    w = None
    f = lambda x: w * x  # noqa: E731
    for i in range(40):  # each array is likely to lie where the one before it lay
        w = jnp.float32(i)
        assert lax.map(f, XS).tolist() == [i, 2 * i]


def test_traced_values_are_never_kept():
    w = None
    f = lambda x: w * x  # noqa: E731

    def loss(value):
        nonlocal w
        w = value
        return lax.map(f, XS).sum()

    assert px.grad(loss)(2.0) == 3
    assert px.grad(lambda x: loss(x * x))(2.0) == 12
    assert [float(px.jit(loss)(x)) for x in (2.0, jnp.float32(3))] == [6, 9]
    assert px.vmap(loss)(XS).tolist() == [3, 6]
    assert loss(4.0) == 12


def test_values_that_a_rule_closes_over():
    def scaled(w):
        f = lambda x: w * x  # noqa: E731

        @px.custom_jvp
        def g(x):
            return lax.map(f, x).sum()

        g.defjvp(lambda primals, tangents: (g(*primals), lax.map(f, tangents[0]).sum()))
        return px.jvp(g, (XS,), (XS,))[1]

    assert [float(scaled(jnp.float32(w))) for w in (2, 3)] == [6, 9]
    assert px.vmap(scaled)(XS).tolist() == [3, 6]
    assert [float(px.jit(scaled)(w)) for w in (2.0, 3.0)] == [6, 9]


# ---- memory ----


def programs():
    gc.collect()
    gc.collect()  # what the functions that have just gone held in turn
    return sum(type(x) is Program for x in gc.get_objects())


def dropped(i):
    w = jnp.full(3, i)
    own = []

    def body(c, x):
        assert own
        return c + w.sum() * x, None

    own.append(body)  # the function reaches itself
    lax.scan(body, np.float32(0), XS)
    lax.map(functools.partial(lambda w, x: w * x, w), XS)
    return weakref.ref(w)


def test_functions_that_are_dropped_take_their_programs_and_arrays_along():
    dropped(0)
    before = programs()
    arrays = [dropped(i) for i in range(20)]
    assert programs() <= before
    assert not any(ref() for ref in arrays)


class Counted:
    calls = 0

    def __call__(self, x):
        Counted.calls += 1
        return 2 * x


def test_what_is_not_used_for_long_is_forgotten(monkeypatch):
    monkeypatch.setattr(bodies, "_entries", Recent(4))
    kept, *others = functions = [Counted() for _ in range(20)]
    for f in functions:
        lax.map(f, XS)
        lax.map(kept, XS)
    assert Counted.calls == 20
    for f in (kept, *others[-3:]):
        lax.map(f, XS)
    assert Counted.calls == 20
    lax.map(others[0], XS)
    assert Counted.calls == 21
