"""Static values that are equal but act otherwise have answers of their own, eagerly as under jit.

Equal are 1, True and 1.0, zeros of both signs, and what holds these: tuples, dataclasses, objects
that say so themselves. A NaN equals nothing, and is the same value all the same.
"""

import dataclasses
import math

import numpy as np
import pytest
from msgspec.structs import replace

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.base.keys import key_of
from phalanx.core.primitive import REGISTRY
from phalanx.laws.primitives import Case
from phalanx.run.calls import calls

NUMBERS = (bool, int, float, complex)


def twins(value):
    """Values that equal ``value`` and are others."""
    if isinstance(value, NUMBERS):
        signs = [-0.0, 0.0] if value == 0 else []
        others = [kind(value) for kind in NUMBERS if _converts(kind, value)] + signs
        return [x for x in others if _written(x) != _written(value)]
    if type(value) is tuple:
        found = next(((i, t) for i, x in enumerate(value) for t in twins(x)), None)
        return [] if found is None else [(*value[: found[0]], found[1], *value[found[0] + 1 :])]
    return []


def _converts(kind, value):
    try:
        return kind(value) == value
    except (TypeError, ValueError, OverflowError):
        return False


def _written(x):
    return type(x), repr(x)


def outcome(run):
    """What ``run`` gives, as bytes with dtypes and shapes, or the class of what it raises."""
    try:
        leaves = phalanx.tree.leaves(run())
    except Exception as e:
        return type(e)
    hosts = [np.asarray(x) for x in leaves]
    return [(h.dtype, h.shape, h.tobytes()) for h in hosts]


def with_twins():
    """Primitives whose examples have parameters with twins."""
    for name, prim in sorted(REGISTRY.items()):
        for number, example in enumerate(prim.examples):
            if any(map(twins, example.params.values())) and not example.axes:
                yield name, number
                break


@pytest.mark.parametrize("name, number", [*with_twins()])
def test_parameters_of_primitives(name, number):
    """With a twin in place of a parameter, what is evaluated at once is what is compiled whole."""
    example = REGISTRY[name].examples[number]
    case = Case(REGISTRY[name], example)
    operands = case.operands()
    outcome(lambda: case.bind(*operands))
    for parameter, value in example.params.items():
        for twin in twins(value)[:3]:
            changed = replace(example, params={**example.params, parameter: twin})
            other = Case(REGISTRY[name], changed)
            whole = phalanx.jit(lambda *xs, other=other: other.bind(*xs))
            expected = outcome(lambda whole=whole: whole(*operands))
            assert outcome(lambda other=other: other.bind(*operands)) == expected, parameter


@dataclasses.dataclass(frozen=True)
class Scale:
    by: object

    def __call__(self, x):
        return x * self.by


class Sized:
    """Says itself what equals it."""

    def __init__(self, by):
        self.by = by

    def __eq__(self, other):
        return type(other) is Sized and self.by == other.by

    def __hash__(self):
        return hash(self.by)

    def __call__(self, x):
        return x * self.by


HOLDERS = [lambda v: v, lambda v: (v, "a"), lambda v: ((v,),), Scale, Sized, lambda v: Scale((v,))]


@pytest.mark.parametrize("hold", HOLDERS)
@pytest.mark.parametrize("one, other", [(1, True), (1, 1.0), (0.0, -0.0), (1.0, 1 + 0j), (2, 2.0)])
def test_keys_of_twins_differ(hold, one, other):
    assert key_of(hold(one)) == key_of(hold(one))
    assert key_of(hold(one)) != key_of(hold(other))


def test_a_key_equals_that_of_no_other_kind_of_value():
    values = [True, 1, 1.0, "1", (1,), ((1,),), (True,), frozenset([1]), frozenset([True]), None,
              Scale(1), Sized(1), np.float32(1), np.int32(1), np.float64(1), 1 + 0j]  # fmt: skip
    assert len({key_of(v) for v in values}) == len(values)


@pytest.mark.parametrize("part", [0, 1, 2])
def test_keys_of_slices_differ_by_their_parts(part):
    def with_part(value):
        return slice(*[value if i == part else 2 for i in range(3)])

    keys = [key_of(with_part(v)) for v in (1, 1.0, True, 0, 0.0, -0.0, None)]
    assert len(set(keys)) == len(keys) and keys[0] == key_of(with_part(1))


@pytest.mark.parametrize("kind", [Scale, Sized])
def test_static_callables_that_are_equal(kind):
    """Each is traced: as an argument of jit and pmap, of a loop, and as the function itself."""
    x, alive = jnp.arange(3), []
    static = phalanx.jit(lambda f, x: f(x), static_argnums=0)
    lanes = phalanx.pmap(lambda f, x: f(x), static_broadcasted_argnums=0)
    for by, dtype in ((1, "int32"), (1.0, "float32"), (True, "int32")):
        f = kind(by)
        alive.append(f)
        ways = static(f, x), lanes(f, x), phalanx.jit(f)(x), phalanx.vmap(f)(x), lax.map(f, x)
        assert [y.dtype for y in ways] == [dtype] * len(ways)


@phalanx.tree_util.register_pytree_node_class
class Scaled:
    """An array, and beside it what is no array: a part of the structure."""

    def __init__(self, x, by):
        self.x, self.by = x, by

    def tree_flatten(self):
        return (self.x,), self.by

    @classmethod
    def tree_unflatten(cls, by, children):
        return cls(*children, by)


@phalanx.tree_util.register_static
class Factor(float):
    """A number that is a structure."""


def product(node):
    by = node.by.by if isinstance(node.by, (Scale, Sized)) else node.by
    return node.x * by


def ways_to_call():
    mesh = phalanx.make_mesh((1,), ("i",))
    whole = {"mesh": mesh, "in_specs": phalanx.P(), "out_specs": phalanx.P()}
    yield phalanx.jit(product)
    by_name = phalanx.jit(lambda *, node: product(node))
    yield lambda node: by_name(node=node)
    yield phalanx.pmap(product)
    yield phalanx.shard_map(product, **whole)
    yield lambda node: phalanx.jit(phalanx.vmap(phalanx.jit(product)))(node)
    yield lambda node: phalanx.vmap(product, lanes_at_once=1)(node)
    yield lambda node: lax.cond(True, product, product, node)
    yield lambda node: lax.scan(lambda c, _: (c, product(c)), node, None, length=1)[1][0]
    yield lambda node: lax.map(product, node)
    yield lambda node: lax.map(product, node, batch_size=1)
    yield lax.composite(product, "tests.product")


@pytest.mark.parametrize("call", [*ways_to_call()])
@pytest.mark.parametrize("hold", [lambda v: v, Scale, Sized])
def test_structures_that_are_equal(call, hold):
    """What a node keeps beside its arrays is told apart as static arguments are."""
    for by in (1, 1.0, True, 0.0, -0.0, 1.0, 1):
        found, expected = call(Scaled(jnp.arange(3), hold(by))), jnp.arange(3) * by
        assert (found.dtype, repr(found)) == (expected.dtype, repr(expected))


def test_numbers_that_are_structures():
    f = phalanx.jit(lambda by: 1 / jnp.float32(by))
    assert [f(Factor(by)) for by in (0.0, -0.0, 0.0)] == [np.inf, -np.inf, np.inf]


class Unequal:
    """Equals nothing, not even itself."""

    def __eq__(self, other):
        return False

    def __hash__(self):
        return 0

    def __call__(self, x):
        return x + 1


def test_a_function_that_does_not_equal_itself():
    assert phalanx.jit(Unequal())(1.0) == 2.0


def test_one_jit_of_equal_callables():
    f = phalanx.jit(lambda f, x: f(x), static_argnums=0)
    for by, dtype in ((1, "int32"), (1.0, "float32"), (1, "int32")):
        assert f(Scale(by), jnp.arange(3)).dtype == f(Sized(by), jnp.arange(3)).dtype == dtype


@pytest.mark.parametrize("fill", [0.0, -0.0])
def test_signs_of_zero_that_fill(fill):
    x = jnp.arange(3.0)
    read = x.at[jnp.array([7])].get(mode="fill", fill_value=fill)
    assert math.copysign(1, read[0]) == math.copysign(1, fill)


def test_a_fresh_nan_compiles_nothing_anew():
    x = jnp.arange(3.0)

    def read():
        return x.at[jnp.array([7])].get(mode="fill", fill_value=float("nan"))

    assert np.isnan(read())
    before = len(calls)
    for _ in range(3):
        assert np.isnan(read())
    assert len(calls) == before
