"""Trees of one structure: their leaves, and no others'."""

import collections
import functools

import hypothesis.strategies as st
import pytest
from hypothesis import given

import phalanx
from phalanx.base import registry, tree
from phalanx.base.codegen_flatten import flatten_function

Pair = collections.namedtuple("Pair", "x y")
LEAVES = st.integers(0, 5)


def grown(inner):
    named = st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    return st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.builds(Pair, inner, inner),
        named,
        named,
        named.map(collections.OrderedDict),
        named.map(lambda d: collections.defaultdict(int, d)),
        st.none(),
    )


TREES = st.recursive(LEAVES, grown, max_leaves=8)


def shared(t):
    """A tree in which one object lies at several depths."""
    return {"a": t, "b": {"a": t, "b": [t, {"c": t}]}}


def changed(t):
    """Trees like ``t`` with one container replaced by one of another kind."""
    level = tree.one_level(t)
    if level is None:
        return
    if type(t) is dict:
        yield collections.OrderedDict(t)
        yield collections.defaultdict(int, t)
    children = list(level.children)
    for i, child in enumerate(children):
        for other in changed(child):
            above = [*children[:i], other, *children[i + 1 :]]
            if isinstance(t, dict):
                new = dict(zip([k.key for k in level.keys], above, strict=True))
                yield type(t)(int, new) if isinstance(t, collections.defaultdict) else type(t)(new)
            else:
                yield type(t)(*above) if isinstance(t, Pair) else type(t)(above)


def test_trees_of_the_usual_containers_can_be_compared():
    """The laws below say nothing of trees for which there is no finder."""
    for t in ({"a": [1, (2, Pair(3, None))]}, {}, [], (), 1):
        assert flatten_function(t) is not None and flatten_function(t)(t) == tree.leaves(t)


@given(TREES)
def test_leaves_are_those_of_flattening(t):
    for example in (t, shared(t)):
        leaves = flatten_function(example)
        if leaves is not None:
            numbered = tree.unflatten(
                tree.structure(example), range(tree.structure(example).num_leaves)
            )
            assert leaves(numbered) == tree.leaves(numbered)


@given(TREES)
def test_another_kind_of_dict_anywhere_is_another_structure(t):
    for example in (t, shared(t)):
        leaves = flatten_function(example)
        for other in changed(example):
            assert tree.structure(other) != tree.structure(example)
            assert leaves is None or leaves(other) is None


@given(TREES, TREES)
def test_two_trees_agree_where_their_structures_do(first, second):
    leaves = flatten_function(first)
    if leaves is not None:
        found = leaves(second)
        same = tree.structure(first) == tree.structure(second)
        if same:
            assert found == tree.leaves(second)
        else:
            assert found is None or not all(map(tree.is_leaf, found))


@pytest.mark.parametrize(
    "t", [[collections.OrderedDict(a=1)], {"a": (collections.defaultdict(int), 1)}]
)
def test_what_cannot_be_compared_is_refused(t):
    assert flatten_function(t) is None


def test_what_a_class_keeps_beside_the_leaves_is_compared():
    leaves = flatten_function([registry.Partial(min, 1), None])
    assert leaves([registry.Partial(min, 2), None]) == [2]
    assert leaves([registry.Partial(max, 2), None]) is None
    assert leaves([registry.Partial(min, 2), 3]) is None
    assert leaves([None, None]) is None


def test_a_tree_may_be_deeper_than_python_can_call():
    deep = functools.reduce(lambda inner, _: (inner,), range(900), 1.0)
    assert flatten_function(deep) is None
    assert tree.leaves(phalanx.jit(lambda x: x)(deep)) == [1.0]
