"""Trees: structure, paths, prefixes, and classes that join in."""

import collections
import copy
import dataclasses
import functools
import math
import os
import pickle
import sys
import time
from typing import Any, NamedTuple

import hypothesis.strategies as st
import pytest
from hypothesis import given

import phalanx
from phalanx.base import nodes, registry, tree
from phalanx.base.errors import TreeError


class Point(NamedTuple):
    x: Any
    y: Any


@registry.register_pytree_node_class
class Box:
    def __init__(self, content, label="box"):
        self.content, self.label = content, label

    def tree_flatten(self):
        return (self.content,), self.label

    @classmethod
    def tree_unflatten(cls, label, children):
        return cls(*children, label)

    def __eq__(self, other):
        return isinstance(other, Box) and (self.content, self.label) == (other.content, other.label)


@registry.register_pytree_with_keys_class
class Named:
    def __init__(self, left, right):
        self.left, self.right = left, right

    def tree_flatten_with_keys(self):
        key = tree.GetAttrKey
        return ((key("left"), self.left), (key("right"), self.right)), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


@functools.partial(registry.register_dataclass, meta_fields=("rate",), data_fields=("w", "b"))
@dataclasses.dataclass
class Layer:
    w: Any
    b: Any
    rate: float = 0.5


@registry.register_dataclass
@dataclasses.dataclass(frozen=True)
class Cell:
    state: Any
    kind: str = dataclasses.field(default="lstm", metadata={"static": True})
    cache: Any = dataclasses.field(default=None, init=False, compare=False)


@registry.register_static
class Mode(str):
    pass


def trees(leaves):
    return st.recursive(
        leaves | st.none(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.lists(inner, max_size=3).map(tuple)
            | st.dictionaries(st.text(max_size=2), inner, max_size=3)
            | st.builds(Point, inner, inner)
            | st.builds(Box, inner)
        ),
        max_leaves=8,
    )


numbers = trees(st.integers())

# ---- laws -----------------------------------------------------------------------------------


@given(numbers)
def test_unflatten_undoes_flatten(x):
    leaves, treedef = tree.flatten(x)
    assert tree.unflatten(treedef, leaves) == x
    assert leaves == tree.leaves(x) and treedef == tree.structure(x)
    assert hash(treedef) == hash(tree.structure(x)) and treedef.num_leaves == len(leaves)


@given(numbers)
def test_map_is_a_functor(x):
    assert tree.map(lambda v: v, x) == x
    twice = tree.map(lambda v: v + 1, tree.map(lambda v: 2 * v, x))
    assert tree.map(lambda v: 2 * v + 1, x) == twice
    assert tree.structure(twice) == tree.structure(x)


@given(numbers)
def test_paths_lead_to_the_leaves_in_order(x):
    found, treedef = tree.flatten_with_path(x)
    assert [leaf for _, leaf in found] == tree.leaves(x) and treedef == tree.structure(x)
    for path, leaf in found:
        node = x
        for key in path:
            if isinstance(key, tree.FlattenedIndexKey):
                node = node.content
            else:
                name, is_attribute = tree.name_of(key), isinstance(key, tree.GetAttrKey)
                node = getattr(node, name) if is_attribute else node[name]
        assert node is leaf


@given(numbers)
def test_a_tree_is_a_prefix_of_itself_and_a_leaf_of_every_tree(x):
    assert tree.broadcast_prefix(0, x) == [0] * len(tree.leaves(x))
    assert tree.broadcast_prefix(None, x) == [None] * len(tree.leaves(x))
    marked = tree.map(lambda _: object(), x)
    assert tree.broadcast_prefix(marked, x) == tree.leaves(marked)


@given(trees(st.just(0)), st.data())
def test_a_prefix_covers_what_grows_under_its_leaves(x, data):
    below = []

    def grow(_):
        below.append(data.draw(numbers))
        return below[-1]

    grown = tree.map(grow, x)
    count = iter(range(1000))
    marked = tree.map(lambda _: next(count), x)
    wanted = [i for i, part in enumerate(below) for _ in tree.leaves(part)]
    assert tree.broadcast_prefix(marked, grown) == wanted
    assert tree.leaves(tree.broadcast(marked, grown)) == wanted


# ---- structure ------------------------------------------------------------------------------


def test_none_is_a_node_and_keys_are_sorted():
    assert tree.leaves(None) == [] and not tree.is_leaf(None) and tree.is_leaf(3)
    assert tree.leaves({"b": 1, "a": None, "c": {2: 3, 1: 4}}) == [1, 4, 3]
    assert tree.structure({"a": 1, "b": 2}) == tree.structure({"b": 1, "a": 2})
    assert tree.structure(None) != tree.structure(())


REBUILT = {
    "map": lambda t: tree.map(lambda x: x, t),
    "map_with_path": lambda t: tree.map_with_path(lambda _, x: x, t),
    "structure": lambda t: tree.structure(t).unflatten(tree.leaves(t)),
    "grad": phalanx.grad(lambda t: sum(tree.leaves(t))),
}


@pytest.mark.parametrize("way", REBUILT)
def test_dicts_are_rebuilt_with_sorted_keys_and_ordered_ones_in_their_order(way):
    plain = {"b": [collections.defaultdict(float, d=1.0, c=2.0)], "a": 3.0}
    ordered = collections.OrderedDict(z=Box(plain), y=4.0)
    rebuilt = REBUILT[way](ordered)
    assert [*rebuilt] == ["z", "y"] and [*rebuilt["z"].content] == ["a", "b"]
    default = rebuilt["z"].content["b"][0]
    assert [*default] == ["c", "d"] and default.default_factory is float


def test_containers_that_are_nodes():
    ordered = collections.OrderedDict([("z", 1), ("a", 2)])
    assert tree.leaves(ordered) == [1, 2]
    assert type(tree.map(str, ordered)) is collections.OrderedDict
    default = tree.map(str, collections.defaultdict(list, {"b": 1, "a": 2}))
    assert default == {"b": "1", "a": "2"} and default.default_factory is list
    assert tree.map(str, Point(1, 2)) == Point("1", "2")
    assert tree.leaves({1, 2}) == [{1, 2}] and tree.leaves("ab") == ["ab"]


def test_is_leaf_stops_everywhere():
    pair = {"a": (1, 2), "b": [3]}

    def is_pair(x):
        return isinstance(x, tuple)

    assert tree.leaves(pair, is_leaf=is_pair) == [(1, 2), 3]
    assert tree.flatten(pair, is_pair)[1] == tree.structure({"a": 0, "b": [0]})
    assert tree.map(len, {"a": (1, 2)}, is_leaf=is_pair) == {"a": 2}
    assert tree.map(lambda x, y: (x, y), (1, 2), (3, 4), is_leaf=is_pair) == ((1, 2), (3, 4))
    assert tree.leaves_with_path(pair, is_pair)[0] == ((tree.DictKey("a"),), (1, 2))
    assert tree.leaves([None, 1], is_leaf=lambda x: x is None) == [None, 1]
    assert tree.broadcast_prefix({"a": (0, 1)}, {"a": (5, 6)}, is_leaf=is_pair) == [(0, 1)] * 2


ASKING = {
    "flatten": lambda t, asked: tree.flatten(t, asked),
    "leaves": lambda t, asked: tree.leaves(t, asked),
    "map": lambda t, asked: tree.map(lambda x: x, t, is_leaf=asked),
    "flatten_with_path": lambda t, asked: tree.flatten_with_path(t, asked),
    "flatten_with_path, of paths": lambda t, asked: tree.flatten_with_path(
        t, lambda _, x: asked(x), True
    ),
    "map_with_path": lambda t, asked: tree.map_with_path(lambda _, x: x, t, is_leaf=asked),
}


@pytest.mark.parametrize("way", ASKING)
def test_is_leaf_is_called_once_for_each_node(way):
    example, seen = {"b": (1, None), "a": [2, []]}, []
    ASKING[way](example, seen.append)
    assert seen == [example, [2, []], 2, [], (1, None), 1, None]


def test_what_remembers_what_it_saw_answers_once():
    shared, seen = [1, 2], set()

    def again(x):
        return id(x) in seen or seen.add(id(x))

    pairs, treedef = tree.flatten_with_path((shared, shared), again)
    assert [leaf for _, leaf in pairs] == [1, 2, shared]
    assert treedef == tree.structure(([0, 0], 0))


def test_reduce_and_all():
    assert tree.reduce(lambda x, y: x - y, [1, (2, 3)]) == -4
    assert tree.reduce(lambda x, y: x + y, [], 7) == 7
    assert tree.reduce(lambda x, y: [*x, y], {"b": 1, "a": 2}, []) == [2, 1]
    assert tree.all([]) and tree.all({"a": 1}) and not tree.all([1, [0]])
    assert tree.all([[], [1]], is_leaf=lambda x: x == []) is False


def test_transpose():
    outer, inner = tree.structure([0, 0]), tree.structure({"x": 0, "y": (0, 0)})
    rows = [{"x": 1, "y": (2, 3)}, {"x": 4, "y": (5, 6)}]
    columns = {"x": [1, 4], "y": ([2, 5], [3, 6])}
    assert nodes.transpose(outer, inner, rows) == nodes.transpose(outer, None, rows) == columns
    assert nodes.transpose(inner, outer, columns) == rows
    with pytest.raises(TreeError, match=r"tree\.transpose"):
        nodes.transpose(outer, inner, [{"x": 1, "y": (2, 3)}])
    with pytest.raises(TreeError, match="key mismatch"):
        nodes.transpose(outer, tree.structure({"x": 0}), [{"x": 1}, {"z": 2}])
    assert nodes.transpose(tree.structure([]), tree.structure({"x": 0}), []) == {"x": []}
    with pytest.raises(TreeError, match=r"has no subtrees to take .*give inner_treedef"):
        nodes.transpose(tree.structure([]), None, [])
    with pytest.raises(TreeError, match=r"outer_treedef must be a structure, got \[0, 0\]"):
        nodes.transpose([0, 0], inner, rows)
    with pytest.raises(TreeError, match=r"inner_treedef must be a structure, got \[0\]"):
        nodes.transpose(outer, [0], rows)


@registry.register_pytree_node_class
class Flattened:
    """A node whose children are all the leaves below it."""

    def __init__(self, within):
        self.within = within

    def tree_flatten(self):
        return tree.flatten(self.within)

    @classmethod
    def tree_unflatten(cls, structure, leaves):
        return cls(tree.unflatten(structure, leaves))


def test_transpose_of_nodes_that_tell_what_is_below_them():
    outer, inner = tree.structure(Flattened({"a": 0, "b": 0})), tree.structure([0, 0])
    first, second = nodes.transpose(outer, inner, Flattened({"a": [3, 4], "b": [5, 6]}))
    assert (first.within, second.within) == ({"a": 3, "b": 5}, {"a": 4, "b": 6})


def test_unflatten_counts_the_leaves():
    with pytest.raises(TreeError, match=r"unflatten: 2 leaves are needed for .* got 3"):
        tree.unflatten(tree.structure((0, 0)), [1, 2, 3])
    with pytest.raises(TreeError, match=r"unflatten: 2 leaves are needed for .* got 3"):
        tree.unflatten(tree.structure((0, 0)), (i for i in "abc"))
    assert tree.unflatten(tree.structure((0, 0)), (i for i in "ab")) == ("a", "b")


# ---- paths ----------------------------------------------------------------------------------


def test_the_words_of_a_path():
    x = {"w": [1, Point(2, Box(3))], 4: Named(5, Layer(6, 7))}
    del x[4]
    x["n"] = Named(5, Layer(6, 7))
    x["c"] = Cell(8)
    assert [tree.keystr(path) for path, _ in tree.leaves_with_path(x)] == [
        "['c'].state",
        "['n'].left",
        "['n'].right.w",
        "['n'].right.b",
        "['w'][0]",
        "['w'][1].x",
        "['w'][1].y[<flat index 0>]",
    ]
    path = tree.leaves_with_path(x)[-1][0]
    assert tree.keystr(path, simple=True, separator="/") == "w/1/y/0"


def test_map_with_path_over_several_trees():
    got = tree.map_with_path(lambda p, x, y: (tree.keystr(p), x, y), {"a": [1]}, {"a": [2]})
    assert got == {"a": [("['a'][0]", 1, 2)]}


# ---- mismatches -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ((1, 2), (1, 2, 3), "different lengths of tuple at key path tree: the first tree has a "
         "tuple of 2 there, tree number 2 has a tuple of 3"),
        ({"a": [1]}, {"a": (1,)}, "different types at key path tree['a']: the first tree has a "
         "list of 1 there, tree number 2 has a tuple of 1"),
        ({"a": 1}, {"b": 1}, "different keys of dict at key path tree: the first tree has a dict "
         "with keys ['a'] there, tree number 2 has a dict with keys ['b']"),
        ([None], [1], "different types at key path tree[0]: the first tree has None there, tree "
         "number 2 has a leaf of type int"),
        ([[1]], [None], "at key path tree[0]: the first tree has a list of 1 there, tree number 2 "
         "has None"),
        (Box(1, "a"), Box(1, "b"), "different metadata of Box at key path tree"),
        ((1, Point(1, [2])), (1, Point(1, 2)), "at key path tree[1].y"),
    ],
)  # fmt: skip
def test_map_names_the_path_where_trees_differ(first, second, message):
    for f, apply in ((lambda *_: 0, tree.map), (lambda *_: 0, tree.map_with_path)):
        with pytest.raises(TreeError) as caught:
            apply(f, first, second)
        assert str(caught.value).startswith("tree.map: pytree structure error: ")
        assert message in str(caught.value)


def test_map_lets_the_other_trees_be_deeper():
    assert tree.map(lambda x, y: (x, y), [1, 2], [(3, 4), None]) == [(1, (3, 4)), (2, None)]


@pytest.mark.parametrize(
    ("prefix", "value", "message"),
    [
        (((0,),), ((1, 2),), "different lengths of tuple at key path pmap in_axes[0]"),
        (
            (((0, 1),),),
            (((1, 2, 3),),),
            "different lengths of tuple at key path pmap in_axes[0][0]",
        ),
        (({"a": 0},), ({"b": 1},), "different keys of dict at key path pmap in_axes[0]"),
        (([0],), ((1,),), "different types at key path pmap in_axes[0]"),
        (((0,),), ({"a leaf ": 1},), "is a dict with keys ['a leaf '], at "),
        (((0,),), (5,), "different types at key path pmap in_axes[0]"),
        (({"a": (0, 0)},), ({"a": None},), "different types at key path pmap in_axes[0]['a']"),
        ((Layer(0, (0,)),), (Layer(1, (1, 2)),), "at key path pmap in_axes[0].b"),
    ],
)
def test_a_bad_prefix_is_told_by_its_path(prefix, value, message):
    with pytest.raises(TreeError, match="pytree structure error: ") as caught:
        tree.broadcast_prefix(prefix, value, "pmap in_axes")
    assert message in str(caught.value)
    assert "the value that it applies to is" in str(caught.value)


def test_prefixes_of_dicts_go_by_key():
    assert tree.broadcast_prefix({"b": 20, "a": 10}, {"a": 1, "b": (2, 3)}) == [10, 20, 20]
    assert tree.broadcast_prefix({"a": None, "b": 0}, {"a": [1, 1], "b": None}) == [None, None]


ordered = collections.OrderedDict
OTHER_DICTS = [
    ({"a": 1}, ordered(a=1), "different types at key path "),
    (collections.defaultdict(int, a=1), {"a": 1}, "different types at key path "),
    (ordered(a=1, b=2), ordered(b=2, a=1), "different keys of OrderedDict at key path "),
]


@pytest.mark.parametrize(("first", "second", "message"), OTHER_DICTS)
def test_dicts_of_other_kinds_and_orders_are_other_nodes(first, second, message):
    with pytest.raises(TreeError, match=message):
        tree.broadcast_prefix(first, second)
    with pytest.raises(TreeError, match=message):
        tree.map(max, first, second)


WAYS = [
    tree.flatten,
    tree.flatten_call,
    tree.leaves,
    tree.flatten_with_path,
    tree.one_level,
    lambda t: tree.map(abs, [t]),
    lambda t: tree.map_with_path(lambda _, x: x, [t]),
    lambda t: tree.broadcast_prefix(0, [t]),
    lambda t: phalanx.jit(abs)(t),
]


@pytest.mark.parametrize("kind", [dict, lambda d: collections.defaultdict(int, d)])
@pytest.mark.parametrize("way", WAYS)
def test_keys_that_do_not_sort_are_told(way, kind):
    words = r"keys of a dict in a tree must sort: .*'str' and 'int'.* test_tree.py:.*OrderedDict"
    with pytest.raises(TreeError, match=words):
        way(kind({1: 2.0, "a": 3.0}))


@pytest.mark.parametrize("way", [way for way in WAYS if way is not tree.one_level])
def test_a_node_below_itself_is_told(way):
    endless = []
    endless.append(endless)
    with pytest.raises(RecursionError, match=r"a node of it lies below itself, at test_tree.py:"):
        way(endless)


# ---- classes --------------------------------------------------------------------------------


def test_registered_classes_rebuild():
    assert tree.map(lambda x: x + 1, Box((1, 2), "label")) == Box((2, 3), "label")
    assert tree.map(str, Layer(1, 2, 0.1)) == Layer("1", "2", 0.1)
    assert tree.map(str, Cell(1, "gru")) == Cell("1", "gru")
    assert tree.leaves(Named(1, (2, 3))) == [1, 2, 3]
    assert tree.map(str, Named(1, 2)).right == "2"


def test_metadata_is_part_of_the_structure():
    assert tree.structure(Layer(1, 2, 0.1)) != tree.structure(Layer(1, 2, 0.2))
    assert tree.structure(Mode("a")) == tree.structure(Mode("a")) != tree.structure(Mode("b"))
    assert tree.leaves([Mode("a"), 1]) == [1] and tree.map(str, [Mode("a")]) == [Mode("a")]


def test_a_class_registers_once():
    for kind in (Box, Layer, list, type(None), collections.OrderedDict):
        with pytest.raises(ValueError, match="already registered"):
            registry.register_pytree_node(kind, lambda x: ((x,), None), lambda _, x: x)
    with pytest.raises(ValueError, match=r"register_dataclass: .*Layer'> is already registered"):
        registry.register_dataclass(Layer)
    with pytest.raises(TypeError, match="register_pytree_node: a class is needed, got 3"):
        registry.register_pytree_node(3, lambda x: ((x,), None), lambda _, x: x)


BAD = {
    "no pair": (lambda _: 1, r"should return a \(children, aux_data\) tuple, got 1"),
    "a list": (lambda _: [(), None], r"tuple, got \[\(\), None\], at test_tree.py:"),
    "no children": (lambda _: (1, None), "'children' is iterable"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_a_class_gives_other_than_children_and_metadata_is_told(name):
    class Own:
        pass

    given, words = BAD[name]
    registry.register_pytree_node(Own, given, lambda _, children: Own())
    for way in (tree.flatten, tree.flatten_with_path, phalanx.jit(lambda x: 0)):
        with pytest.raises(TreeError, match=words):
            way([Own()])


def test_what_a_class_raises_is_seen_as_it_is():
    class Own:
        pass

    def refuse(_):
        raise ValueError("not now")

    registry.register_pytree_node(Own, refuse, lambda _, children: Own())
    for way in (tree.flatten, tree.flatten_with_path, phalanx.jit(lambda x: 0)):
        with pytest.raises(ValueError, match=r"^not now$") as caught:
            way([Own()])
        assert type(caught.value) is ValueError


@given(numbers)
def test_structures_are_pickled_and_copied(x):
    for structure in (tree.structure(x), tree.flatten_call(x)[1]):
        for same in (pickle.loads(pickle.dumps(structure)), copy.deepcopy(structure)):
            assert same == structure and hash(same) == hash(structure)
            assert same.unflatten(tree.leaves(x)) == x


def test_structures_say_what_their_nodes_are():
    node = tree.structure({"a": [1], "b": Box(2, "label")})
    assert node.node_data() == (dict, ["a", "b"])
    assert [child.node_data() for child in node.children()] == [(list, None), (Box, "label")]
    assert tree.structure(1).node_data() is None


def test_flatten_may_give_any_iterable():
    class Lazy:
        def __init__(self, *items):
            self.items = items

    registry.register_pytree_node(
        Lazy, lambda x: ((i for i in x.items), None), lambda _, children: Lazy(*children)
    )
    assert tree.leaves(Lazy(1, 2)) == [1, 2]
    assert tree.map(str, Lazy(1, 2)).items == ("1", "2")


def test_a_dataclass_must_say_where_each_field_goes():
    @dataclasses.dataclass
    class Pair:
        x: Any
        y: Any

    with pytest.raises(ValueError, match="register_dataclass: Pair has the fields"):
        registry.register_dataclass(Pair, data_fields=["x"], meta_fields=[])
    with pytest.raises(ValueError, match="is not a dataclass"):
        registry.register_dataclass(int)
    registry.register_dataclass(Pair, data_fields=["x"])
    assert tree.leaves(Pair(1, 2)) == [1]


def test_dropped_fields_get_their_defaults():
    @dataclasses.dataclass
    class Cached:
        x: Any
        cache: Any = None

    registry.register_dataclass(Cached, ["x"], [], drop_fields=["cache"])
    assert tree.map(lambda v: v, Cached(1, "full")) == Cached(1, None)


def test_partial():
    f = registry.Partial(pow, 2, exp=3)
    assert f() == 8 and tree.leaves(f) == [2, 3]
    assert tree.map(lambda v: v + 1, f)() == 81
    assert [tree.keystr(p) for p, _ in tree.leaves_with_path(f)] == [".args[0]", ".keywords['exp']"]
    assert tree.structure(f) == tree.structure(registry.Partial(pow, 5, exp=6))
    assert tree.structure(f) != tree.structure(registry.Partial(max, 5, exp=6))
    assert tree.leaves(registry.Partial(functools.partial(pow, 2), 3)) == [2, 3]
    assert pickle.loads(pickle.dumps(f))() == copy.copy(f)() == 8


STEPS = {
    "DictKey(key='a')": tree.DictKey("a"),
    "DictKey(key=0)": tree.DictKey(0),
    "SequenceKey(idx=0)": tree.SequenceKey(0),
    "GetAttrKey(name='a')": tree.GetAttrKey("a"),
    "FlattenedIndexKey(key=0)": tree.FlattenedIndexKey(0),
}


@pytest.mark.parametrize("shown", STEPS)
def test_steps_are_leaves_and_equal_those_of_their_class_that_say_the_same(shown):
    step = STEPS[shown]
    assert repr(step) == shown and [s for s in STEPS.values() if s == step] == [step]
    same = [pickle.loads(pickle.dumps(step)), copy.copy(step), type(step)(tree.name_of(step))]
    assert same == [step] * 3 and {*same} == {step} and len({*STEPS.values()}) == len(STEPS)
    assert step != (tree.name_of(step),) and tree.leaves([step]) == [step]
    with pytest.raises(AttributeError):
        setattr(step, step.__match_args__[0], 1)
    with pytest.raises(TypeError):
        len(step)


def test_steps_are_matched():
    def said(step):
        match step:
            case tree.DictKey(key):
                return "key", key
            case tree.GetAttrKey(name=name):
                return "name", name
            case tree.SequenceKey(i) | tree.FlattenedIndexKey(i):
                return "number", i

    assert [said(step) for step in STEPS.values()] == [
        ("key", "a"), ("key", 0), ("number", 0), ("name", "a"), ("number", 0)
    ]  # fmt: skip


def test_a_dict_with_a_key_that_is_not_itself():
    assert tree.broadcast_prefix({math.nan: 1, 2.0: 2}, {math.nan: 3, 2.0: [4]}) == [1, 2]


class Half(collections.namedtuple("Half", "x y")):
    """A namedtuple of which only one field is a child."""


registry.register_pytree_node(Half, lambda h: ((h.x,), h.y), lambda y, children: Half(*children, y))


def test_paths_into_a_namedtuple_that_was_registered():
    pairs, treedef = tree.flatten_with_path(Half([1], 2))
    assert [(tree.keystr(path), leaf) for path, leaf in pairs] == [("[<flat index 0>][0]", 1)]
    assert treedef.unflatten([3]) == Half([3], 2)
    assert tree.map_with_path(lambda path, x: x + 1, Half(1, 2)) == Half(2, 2)


LEAVES = {
    "a deque": collections.deque([1, (2, 3)]),
    "an empty deque": collections.deque(maxlen=2),
    "a time": time.gmtime(0),
    "what is known of a file": os.stat(os.curdir),
    "a version": sys.version_info,
    "a set": {1, 2},
    "a view": {"a": 1}.keys(),
}


@pytest.mark.parametrize("name", LEAVES)
def test_what_is_a_leaf_to_one_function_is_one_to_all(name):
    leaf = LEAVES[name]
    path = (tree.DictKey("a"), tree.SequenceKey(1))
    for t in ({"a": [0, leaf]}, {"a": (0, leaf)}):
        treedef, every = tree.structure(t), lambda t=t: tree.leaves(t)[1]
        assert tree.is_leaf(leaf) and tree.one_level(leaf) is None
        assert not nodes.is_tree_node(type(leaf)) and nodes.all_leaves([leaf])
        assert every() is tree.flatten(t)[0][1] is tree.flatten_call(t)[0][1] is leaf
        assert tree.flatten(t, lambda _: False)[0][1] is leaf
        assert tree.flatten_call(t)[1].num_leaves == treedef.num_leaves == 2
        assert treedef == tree.structure(tree.map(lambda _: 1, t))
        assert tree.map(lambda x, y: (x, y), t, t)["a"][1] == (leaf, leaf)
        assert tree.leaves_with_path(t)[1] == (path, leaf)
        assert tree.map_with_path(lambda path, x: (path, x), t)["a"][1] == (path, leaf)
        assert tree.broadcast_prefix(t, {"a": type(t["a"])((0, [5, 6]))})[1:] == [leaf, leaf]
        assert tree.broadcast({"a": 7}, t) == {"a": type(t["a"])((7, 7))}
        with pytest.raises(TreeError, match="the value that it applies to is one leaf"):
            tree.broadcast_prefix({"a": type(t["a"])((0, [5, 6]))}, t)
    with pytest.raises(TreeError, match="a node is needed, got a leaf"):
        nodes.flatten_one_level(leaf)


def test_results_of_the_system_are_nodes_where_one_registers_their_class():
    times = os.times()
    assert tree.leaves([times]) == [times]
    kind = type(times)
    registry.register_pytree_node(kind, lambda t: (t[:2], t[2:]), lambda rest, c: kind([*c, *rest]))
    assert tree.leaves([times]) == [*times[:2]] and nodes.is_tree_node(kind)
    assert tree.map(lambda x: x + 1, times)[:2] == (times[0] + 1, times[1] + 1)
    path = (tree.FlattenedIndexKey(1),)
    assert tree.leaves_with_path(times)[1] == (path, times[1])


@pytest.mark.parametrize("kind", [dict, collections.OrderedDict, collections.defaultdict])
def test_paths_into_a_dict_whose_class_was_registered_without_keys(kind):
    class Own(kind):
        pass

    def made(keys, children):
        own = Own()
        own.update(zip(keys, children, strict=True))
        return own

    registry.register_pytree_node(Own, lambda d: (tuple(d.values()), tuple(d)), made)
    own = made("ba", (1, [2, 3]))
    paths = [tree.keystr(path) for path, _ in tree.leaves_with_path(own)]
    assert paths == ["[<flat index 0>]", "[<flat index 1>][0]", "[<flat index 1>][1]"]
    assert tree.map_with_path(lambda _, x: x + 1, own) == made("ba", (2, [3, 4]))
    assert tree.broadcast_prefix(made("ba", (5, 6)), own) == [5, 6, 6]
    with pytest.raises(TreeError, match=r"different metadata of Own at key path prefix: it has"):
        tree.broadcast_prefix(made("ab", (5, 6)), own)


Status = collections.namedtuple("Status", "code body")


def test_leaves_come_in_the_order_of_their_structure():
    ordered, default = collections.OrderedDict(b=1, a=2), collections.defaultdict(int, b=3, a=4)
    kinds = [{"b": 5, "a": (6, None)}, ordered, default, [7, 8]]
    nodes = [*kinds, Point(9, [10]), Box(11), Named(12, 13), Layer(14, 15), {3: 17, 2: 16}, "18"]
    expected = [6, 5, 1, 2, 4, 3, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, "18"]
    assert tree.leaves(nodes) == tree.flatten(nodes)[0] == expected


def test_leaves_are_those_of_a_class_as_it_is_registered_now():
    class Late:
        x = 1

    late, status = Late(), Status(1, 2)
    assert tree.leaves((late, status)) == [late, 1, 2]
    registry.register_pytree_node(Late, lambda late: ((late.x, 3), None), lambda *_: late)
    registry.register_pytree_node(Status, lambda s: ((s.body,), s.code), lambda c, b: Status(c, *b))
    assert tree.leaves((late, status)) == [1, 3, 2]


class Reversed(Point):
    """A record that iterates over something else than its fields in order."""

    def __iter__(self):
        return iter((self.y, self.x))


class Names(Status):
    def __iter__(self):
        return iter(self._fields)


def nodes_of_classes(inner):
    each = [Point, Reversed, Names, Half, Named, Layer, Box]
    return st.one_of([st.builds(kind, inner, inner) for kind in each])


@given(st.recursive(st.integers() | st.none(), nodes_of_classes, max_leaves=8))
def test_leaves_are_those_of_flatten_whatever_nodes_iterate_over(x):
    leaves = tree.flatten(x)[0]
    assert tree.leaves(x) == leaves == [leaf for _, leaf in tree.leaves_with_path(x)]
