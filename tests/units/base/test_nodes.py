"""Nodes one level at a time, structures of structures, and reductions in pairs."""

import collections
import dataclasses

import pytest

import phalanx
from phalanx import tree, tree_util
from phalanx.errors import TreeError

Pair = collections.namedtuple("Pair", "x y")


def test_structures_are_made_of_those_of_their_children():
    whole = tree.structure([1, (2, {"a": 3}), None])
    children = tree_util.treedef_children(whole)
    assert children == [tree.structure(x) for x in (0, (0, {"a": 0}), None)]
    assert tree_util.treedef_tuple(children) == tree.structure((1, (2, {"a": 3}), None))
    assert [tree_util.treedef_is_leaf(child) for child in children] == [True, False, True]


def test_one_level():
    assert tree_util.flatten_one_level(Pair(1, [2]))[0] == (1, [2])
    pairs, _ = tree_util.flatten_one_level_with_keys({"b": 1, "a": (2,)})
    assert [(str(key), child) for key, child in pairs] == [("['a']", (2,)), ("['b']", 1)]
    assert tree_util.flatten_one_level(None)[0] == ()
    with pytest.raises(TreeError, match="leaf"):
        tree_util.flatten_one_level(1)
    registry = tree_util.default_registry
    assert registry.flatten_one_level(1) is None
    assert registry.flatten_one_level([5])[0] == [5]
    assert registry.flatten([5, (6,)])[0] == [5, 6]


def test_which_classes_are_nodes():
    nodes = [tuple, list, dict, type(None), Pair, collections.OrderedDict, tree_util.Partial]
    assert all(map(tree_util.is_tree_node, nodes))
    assert not any(map(tree_util.is_tree_node, [int, str, object, phalanx.Array]))
    assert tree_util.all_leaves([1, "a"], is_leaf=None)
    assert not tree_util.all_leaves([1, Pair(1, 2)])
    assert tree_util.all_leaves([1, Pair(1, 2)], is_leaf=lambda x: isinstance(x, Pair))


def test_reduction_in_pairs_keeps_the_order():
    for n in range(1, 12):
        letters = [chr(97 + i) for i in range(n)]
        assert tree.reduce_associative(lambda x, y: x + y, letters) == "".join(letters)
    depth = tree.reduce_associative(lambda x, y: max(x, y) + 1, [0] * 1000)
    assert depth == 10
    assert tree_util.tree_reduce_associative(max, [], identity=7) == 7
    with pytest.raises(TypeError, match="identity"):
        tree.reduce_associative(max, ())


def test_fields_of_the_structure():
    @tree_util.register_dataclass
    @dataclasses.dataclass
    class Layer:
        w: float
        name: str = tree.static(default="dense", metadata={"doc": "its name"})

    assert tree.leaves(Layer(1.0)) == [1.0]
    assert tree.structure(Layer(1.0)) != tree.structure(Layer(1.0, "conv"))
    assert Layer.__dataclass_fields__["name"].metadata == {"doc": "its name", "static": True}


@tree_util.register_pytree_node_class
class Fresh:
    """Makes its children anew whenever it is asked."""

    def tree_flatten(self):
        return ([1, 2], (3,)), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return list(children)


def test_where_to_end_may_depend_on_the_path():
    x = {"a": [1, None, Fresh()], "b": (2,)}

    def below_two(path, _):
        return len(path) == 2

    pairs, treedef = tree.flatten_with_path(x, below_two, True)
    found = [tree_util.keystr(path) for path, _ in pairs]
    assert found == ["['a'][0]", "['a'][1]", "['a'][2]", "['b'][0]"]
    assert treedef == tree.structure({"a": [0, 0, 0], "b": (0,)})
    everywhere = tree.map_with_path(
        lambda path, leaf: len(path),
        x,
        is_leaf=lambda path, _: len(path) == 1,
        is_leaf_takes_path=True,
    )
    assert everywhere == {"a": 1, "b": 1}
    assert len(tree_util.tree_leaves_with_path(x)) == 5


@tree_util.register_pytree_node_class
class Scaled:
    """Arrays are what it holds, and numbers say how it is made."""

    def __init__(self, x, by):
        self.held = {"x": x, "by": by}

    def tree_flatten(self):
        numbers = {k: v for k, v in self.held.items() if isinstance(v, int)}
        arrays = {k: v for k, v in self.held.items() if k not in numbers}
        return tuple(arrays.values()), (tuple(arrays), tuple(numbers.items()))

    @classmethod
    def tree_unflatten(cls, aux, children):
        names, numbers = aux
        return cls(**dict(zip(names, children, strict=True)), **dict(numbers))


def scaled(x):
    return Scaled(x * 2, 3)


def with_a_rule(f):
    ruled = phalanx.custom_jvp(f)
    ruled.defjvp(lambda x, t: (f(*x), f(*t)))
    return lambda x: phalanx.jvp(ruled, (x,), (x,))[0]


def mesh():
    return phalanx.make_mesh((1,), ("a",))


WITHIN = {
    "vmap": phalanx.vmap,
    "pmap": phalanx.pmap,
    "jit": lambda f: phalanx.jit(f, out_shardings=phalanx.NamedSharding(mesh(), phalanx.P())),
    "shard_map": lambda f: phalanx.shard_map(
        f, mesh=mesh(), in_specs=phalanx.P("a"), out_specs=phalanx.P("a")
    ),
    "cond": lambda f: lambda x: phalanx.lax.cond(x.sum() > 0, f, f, x),
    "custom_jvp": with_a_rule,
}


@pytest.mark.parametrize("around", WITHIN)
def test_results_of_classes_that_look_at_what_they_hold(around):
    result = WITHIN[around](scaled)(phalanx.numpy.arange(4.0))
    assert result.held["x"].tolist() == [0, 2, 4, 6] and result.held["by"] == 3
