"""What stands around products: sums that are contracted, long chains that are stored once."""

from itertools import pairwise

import numpy as np
import pytest

import phalanx as ph
import phalanx.numpy as jnp
from phalanx.transforms.products import LONG, around_products
from phalanx.transforms.stage import evaluate

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(2, 8, 3, 4)).astype(np.float32)
BATCHED = "bij,bkj->bik"


def shapes(program):
    return [v.type.shape for e in program.equations for v in e.outputs]


def check(f, *args):
    """The program before and after, which compute the same."""
    program = ph.make_program(f)(*args)
    changed = around_products(program)
    pairs = zip(evaluate(changed, args), evaluate(program, args), strict=True)
    for got, wanted in pairs:
        np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=1e-5)
    return program, changed


@pytest.mark.parametrize("axis", [0, (0, 1), (0, 2), (0, 1, 2)])
def test_a_sum_over_the_batch_of_a_product_is_a_contraction(axis):
    x, y = A[:, :, :2], B[:, :, :2]
    before, after = check(lambda x, y: jnp.einsum(BATCHED, x, y).sum(axis), x, y)
    assert (8, 3, 3) in shapes(before) and (8, 3, 3) not in shapes(after)


def test_not_where_others_take_the_product():
    before, after = check(lambda x, y: (lambda p: (p, p.sum(0)))(jnp.einsum(BATCHED, x, y)), A, B)
    assert shapes(after) == shapes(before)


@pytest.mark.parametrize("axis", [1, 2])
def test_not_where_the_sum_leaves_the_batch(axis):
    before, after = check(lambda x, y: jnp.einsum(BATCHED, x, y).sum(axis), A[..., :2], B[..., :2])
    assert shapes(after) == shapes(before)


def test_not_where_operands_are_larger_than_the_product():
    wide = RNG.normal(size=(2, 8, 3, 40)).astype(np.float32)
    before, after = check(lambda x, y: jnp.einsum(BATCHED, x, y).sum(0), *wide)
    assert shapes(after) == shapes(before)


def chain(x, links):
    for _ in range(links):
        x = jnp.sin(x)
    return x


@pytest.mark.parametrize("extra", [0, 1])
def test_a_long_chain_that_a_product_stores_is_made_once(extra):
    def f(x, y):
        made = chain(x, LONG + extra)
        return made @ y, made + 1

    _, after = check(f, A[0], B[0].T)
    kinds = [e.prim.name for e in after.equations]
    assert kinds.count("optimization_barrier") == extra
    if extra:  # and both read what is behind it
        barrier = next(e for e in after.equations if e.prim.name == "optimization_barrier")
        (behind,) = barrier.outputs
        readers = [e for e in after.equations if behind in e.inputs]
        assert len(readers) == 2 and barrier.inputs[0] not in {a for e in readers for a in e.inputs}
        places = [after.equations.index(e) for e in (barrier, *readers)]
        assert all(before < later for before, later in pairwise(places))


def test_what_only_a_product_takes_is_stored_by_it_alone():
    program = ph.make_program(lambda x, y: chain(x, 2 * LONG) @ y)(A[0], B[0].T)
    kinds = [e.prim.name for e in around_products(program).equations]
    assert "optimization_barrier" not in kinds


def test_a_program_without_products_is_itself():
    program = ph.make_program(lambda x: chain(x, 40))(A)
    assert around_products(program) is program
