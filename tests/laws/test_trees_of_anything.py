"""The functions of trees, called with anything: they raise, and end no process."""

import itertools
import random

import phalanx.tree
import phalanx.tree_util
from tests.children import ended

PRELUDE = """
from phalanx import tree as t, tree_util as u
D = u.tree_structure
class Own: pass
def node(flat, unflat=lambda data, children: None, keyed=None):
    class Node: pass
    if keyed is None:
        u.register_pytree_node(Node, flat, unflat)
    else:
        u.register_pytree_with_keys(Node, keyed, unflat, flat)
    return Node()
def all_of(tree):
    leaves, d = u.tree_flatten(tree)
    d.unflatten(leaves), d == D([tree]), hash(d), repr(d), d.flatten_up_to(tree)
    u.tree_leaves_with_path(tree)
    jit(lambda x: x)(tree)
"""
ANYTHING = [
    "None", "1", "1.5", "float('nan')", "'ab'", "b'x'", "object()", "int", "Own", "Own()", "[None]",
    "[1]", "()", "{1: 2, 'a': 3}", "[D(1)]", "[D(1), None]", "[D((1, 2)), 3]", "D(1)", "D(None)",
    "D((1, {'a': 2}))", "{'a': D(1)}", "lambda *a: a", "iter([D(1)])", "jnp.ones(3)", "True",
    "type(D(1)).__new__(type(D(1)))",
]  # fmt: skip
FLAT = [
    "None", "1", "()", "(1,)", "(1, 2, 3)", "(1, [2])", "([1], object())", "([1], [2])",
    "({1: 2}, None)", "('ab', 'c')", "[[1], 2]", "([1 / 0], 2)", "([D(1)], D(1))", "([(1, 2)], 3)",
    "([1, 2], 3)", "([((), 1)], 3)", "([(u.DictKey([]), 1)], 3)",
]  # fmt: skip
CHANGED = [
    f"{make}\nu.tree_{call}"
    for make in ("l = [1, [2], 3] * 50", "l = {i: [i] for i in range(50)}")
    for call in (
        "flatten(l, is_leaf=lambda x: l.clear())", "map(lambda x: l.clear(), l)",
        "map(lambda x, y: l.clear(), l, l)", "leaves_with_path(l, is_leaf=lambda x: l.clear())",
    )
]  # fmt: skip
METHODS = [
    "unflatten", "flatten_up_to", "compose", "walk", "make_from_node_data_and_children",
    "from_iterable_tree", "__eq__", "__setstate__", "serialize_using_proto",
]  # fmt: skip


def test_wrong_kinds_of_arguments_end_no_process():
    draw = random.Random(0).choice
    calls = [f"t.{name}" for name in phalanx.tree.__all__]
    calls += [f"u.{name}" for name in phalanx.tree_util.__all__]
    calls += [f"D((1, {{'a': 2}})).{name}" for name in METHODS]
    pieces = [f"{call}({x})" for call in calls for x in ANYTHING]
    for call, count, _ in itertools.product(calls, (2, 3), range(8)):
        pieces.append(f"{call}({', '.join(draw(ANYTHING) for _ in range(count))})")
    assert not ended(pieces, prelude=PRELUDE)


def test_classes_that_are_taken_apart_wrongly_end_no_process():
    pieces = [f"all_of(node(lambda n: {flat}))" for flat in FLAT]
    pieces += [f"all_of(node(lambda n: ([1], 2), keyed=lambda n: {flat}))" for flat in FLAT]
    assert not ended([*pieces, *CHANGED], prelude=PRELUDE)
