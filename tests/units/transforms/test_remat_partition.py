"""A program in two: what the first part stores is what a policy grants, and the rest is enough."""

import numpy as np
import pytest

import phalanx as ph
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.ad_checkpoint import checkpoint_name
from phalanx.transforms.remat_partition import partition_for_remat
from phalanx.transforms.stage import evaluate

RNG = np.random.default_rng(2)
X, Y = RNG.normal(size=(2, 3)).astype(np.float32)
M = RNG.normal(size=(3, 3)).astype(np.float32)

PROGRAMS = {
    "a chain": lambda x, y: jnp.sin(jnp.cos(x) * y) @ M,
    "a call": lambda x, y: ph.jit(lambda x: jnp.exp(M @ jnp.sin(x)))(x) * y,
    "a scan": lambda x, y: lax.scan(lambda c, r: (jnp.sin(M @ c) + r, c), x, jnp.stack([y, x]))[1],
    "a scan with dead carry": lambda x, y: lax.scan(
        lambda c, r: ((c[0] + 1, jnp.sin(c[1])), c[1] * r), (0.0, x), jnp.stack([y, x])
    )[0][1],
    "a branch": lambda x, y: jnp.cos(lax.cond(x[0] > 0, lambda: M @ x, lambda: M @ y)),
    "a loop": lambda x, y: lax.while_loop(lambda c: c.sum() < 9, lambda c: c + jnp.exp(y), x) * 2,
    "named": lambda x, y: jnp.cos(checkpoint_name(jnp.sin(x), "s")) + checkpoint_name(y * x, "p"),
    "lanes": lambda x, y: ph.pmap(lambda r, s: jnp.sin(jnp.cos(r) * s))(x, y),
}
POLICIES = {
    "everything": lambda prim, *_, **__: True,
    "nothing": lambda prim, *_, **__: False,
    "products": ph.checkpoint_policies.dots_saveable,
    "names": ph.checkpoint_policies.save_only_these_names("s"),
}


def every(program):
    return [v for e in program.equations for v in e.outputs]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_both_parts_together_give_what_is_wanted(name, policy):
    program = ph.make_program(PROGRAMS[name])(X, Y)
    wanted = every(program)
    values = evaluate(program.update(outputs=[*program.outputs, *wanted]), [X, Y])
    results, rest = values[: len(program.outputs)], values[len(program.outputs) :]
    parts = partition_for_remat(program, wanted, POLICIES[policy])
    first = evaluate(parts.storing, [X, Y])
    again = evaluate(parts.resuming, [X, Y, *[first[i] for i in parts.stored]])
    for got, expected in zip([*first[: len(results)], *again], [*results, *rest], strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-6)


def resumed(name, policy):
    """The operations that run a second time."""
    program = ph.make_program(PROGRAMS[name])(X, Y)
    parts = partition_for_remat(program, every(program), POLICIES[policy])
    return {e.prim.name for e in parts.resuming.walk()}


def test_what_is_granted_does_not_run_again():
    assert resumed("a chain", "everything") == set()
    assert "dot_general" not in resumed("a chain", "products")
    assert "dot_general" in resumed("a chain", "nothing")
    assert {"sin", "cos"} <= resumed("a chain", "products")
    assert "dot_general" not in resumed("a call", "products")
    assert "dot_general" not in resumed("a scan", "products")
    assert "sin" not in resumed("named", "names") and "mul" in resumed("named", "names")


def test_only_what_the_rest_needs_is_stored():
    program = ph.make_program(lambda x, y: (jnp.sin(x), jnp.cos(y)))(X, Y)
    parts = partition_for_remat(program, program.outputs[:1], POLICIES["everything"])
    assert parts.stored == (0,) and not parts.resuming.equations
    parts = partition_for_remat(program, program.outputs[:1], POLICIES["nothing"])
    assert parts.stored == () and [e.prim.name for e in parts.resuming.equations] == ["sin"]


def test_effects_do_not_happen_again():
    def f(x, y):
        return ph.experimental.io_callback(np.sin, ph.ShapeDtypeStruct((3,), np.float32), x) * y

    program = ph.make_program(f)(X, Y)
    parts = partition_for_remat(program, every(program), POLICIES["nothing"])
    assert parts.storing.effects and not parts.resuming.effects


def test_a_policy_says_yes_or_no():
    program = ph.make_program(jnp.sin)(X)
    with pytest.raises(TypeError, match=r"policy maybe must return True or False.*'maybe'"):

        def maybe(prim, *_, **__):
            return "maybe"

        partition_for_remat(program, program.outputs, maybe)
