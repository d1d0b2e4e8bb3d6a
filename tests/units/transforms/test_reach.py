"""What functions contain: found wherever it lies, and compared with what it was before."""

import enum
import functools
import types
from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass

import numpy as np
import pytest

import phalanx as ph
import phalanx.numpy as jnp
from phalanx.transforms.closures import closed_over
from phalanx.transforms.contents import contents_of
from phalanx.transforms.reach import LARGEST_COPY, MOST_OBJECTS, NotComparable, Reach

Pair = namedtuple("Pair", "x y")


@dataclass
class Record:
    x: object


class Slots:
    __slots__ = ("__weakref__", "x", "y")

    def __init__(self, x):
        self.x = x


class Below(Slots):
    """Slots above, a dict below."""

    def __init__(self, x):
        self.z = x


class Rows(list):
    def __iter__(self):
        raise RuntimeError("looked at by what it says of itself")


class Table(dict):
    def values(self):
        raise RuntimeError("looked at by what it says of itself")


class Color(enum.Enum):
    RED = 1


def closing(x):
    return lambda: x


def with_attribute(x):
    def f(): ...

    f.x = x
    return f


HOLDING = {
    "tuple": lambda x: (1, x),
    "list": lambda x: [x],
    "deque": lambda x: deque([x]),
    "dict": lambda x: {"x": x},
    "default dict": lambda x: defaultdict(list, x=x),
    "default of a dict": lambda x: defaultdict(closing(x)),
    "ordered dict": lambda x: OrderedDict(x=x),
    "named tuple": lambda x: Pair(1, x),
    "dataclass": Record,
    "slots": Slots,
    "slots and dict": Below,
    "namespace": lambda x: types.SimpleNamespace(x=x),
    "closure": closing,
    "default": lambda x: lambda y=x: y,
    "keyword": lambda x: lambda *, y=x: y,
    "attribute": with_attribute,
    "method": lambda x: types.MethodType(lambda self: self, Record(x)),
    "bound method of a list": lambda x: [x].append,
    "partial": lambda x: functools.partial(max, x),
    "partial by name": lambda x: functools.partial(max, key=x),
    "subclass of list": lambda x: Rows([x]),
    "subclass of dict": lambda x: Table(x=x),
    "all of it": lambda x: [{"a": (Record(closing(Slots(x))),)}],
}


@pytest.mark.parametrize("name", HOLDING)
def test_a_traced_value_is_found_wherever_it_lies(name):
    found = []

    @ph.jit
    def f(x):
        found.extend(t is x for t in closed_over(HOLDING[name](x)))
        return x

    f(1.0)
    assert found == [True]


@pytest.mark.parametrize("name", HOLDING)
def test_the_same_things_are_seen_to_be_the_same(name):
    held = Record(1)
    thing = HOLDING[name](held)
    before = Reach([thing])
    assert Reach([thing]).seen == before.seen
    held.x = 2
    assert Reach([thing]).seen != before.seen
    held.x = 1
    assert Reach([thing]).seen == before.seen


MUTATIONS = {
    "append": ([1], lambda x: x.append(2)),
    "an item": ({"a": 1}, lambda x: x.update(a=2)),
    "a key": ({"a": 1}, lambda x: (x.pop("a"), x.update(b=1))),
    "an element": (np.zeros(3), lambda x: np.copyto(x, [0, 0, -0.0])),
    "the dtype": ([np.zeros(1, np.int32)], lambda x: x.__setitem__(0, np.zeros(1, np.uint32))),
    "a slot that was empty": (Slots(1), lambda x: setattr(x, "y", 1)),
    "an equal number of another type": ([1], lambda x: x.__setitem__(0, True)),
    "the class": (Record(1), lambda x: setattr(x, "__class__", type("Other", (Record,), {}))),
    "the order": (OrderedDict(a=1, b=2), lambda x: x.move_to_end("a")),
    "the code": (closing(1), lambda f: setattr(f, "__code__", f.__code__.replace(co_name="g"))),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_change_is_seen(name):
    thing, change = MUTATIONS[name]
    before = Reach([thing])
    change(thing)
    assert Reach([thing]).seen != before.seen


@pytest.mark.parametrize(
    "thing",
    [
        iter([1]),
        (x for x in ()),
        np.zeros(LARGEST_COPY + 1, np.int8),
        np.array([object()]),
        memoryview(b""),
        [[] for _ in range(MOST_OBJECTS + 1)],
    ],
    ids=["iterator", "generator", "large array", "objects", "view", "too much"],
)
def test_what_may_change_unseen_cannot_be_compared(thing):
    with pytest.raises(NotComparable):
        Reach([thing])


def test_what_never_changes_is_not_looked_into():
    fixed = [int, np, np.float32(1), np.dtype("f4"), np.sin, Color.RED, jnp.ones(3), "text", None]
    assert len(Reach(fixed).seen) <= 2 * len(fixed)


def test_circles_end():
    x = []
    x.append({"self": x})
    assert Reach([x]).seen == Reach([x]).seen
    assert closed_over(x) == []


def test_two_of_one_thing_are_not_one_of_each():
    one, other = [1], [1]
    assert Reach([[one, one]]).seen != Reach([[one, other]]).seen


def test_references_say_when_a_thing_is_gone():
    gone = []
    thing = Record(1)
    kept = Reach([thing]).references(gone.append)
    assert not gone and kept
    del thing
    assert gone


def test_what_is_not_known_contains_what_nobody_can_say():
    assert contents_of(memoryview) is None
    assert contents_of(type(iter([]))) is None
    assert list(contents_of(tuple)((1, 2))) == [1, 2]
