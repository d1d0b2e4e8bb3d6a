"""Large constants and arrays on devices are operands of what is compiled, each of them once."""

import numpy as np
import pytest

import phalanx as ph
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.core.program import LARGEST_LITERAL
from phalanx.transforms.constants import lifted
from phalanx.transforms.stage import evaluate

LARGE = np.arange(LARGEST_LITERAL + 1, dtype=np.float32)
SMALL = LARGE[:-1]
DEVICE = jnp.arange(3.0)
X = np.float32(2)

USES = {
    "twice": lambda x: x * LARGE[-3:].copy() + (DEVICE + DEVICE).sum(),
    "as a result": lambda x: (x, DEVICE),
    "in a call": lambda x: ph.jit(lambda y: y + DEVICE)(x) + DEVICE,
    "in both branches": lambda x: lax.cond(x > 0, lambda: DEVICE, lambda: DEVICE + x),
    "in one branch": lambda x: lax.cond(x > 0, lambda: DEVICE, lambda: jnp.zeros(3)),
    "in a loop": lambda x: lax.while_loop(
        lambda c: c.sum() < DEVICE[2], lambda c: c + DEVICE, x + 0 * DEVICE
    ),
    "in a scan in a scan": lambda x: lax.scan(
        lambda c, _: (lax.scan(lambda d, r: (d + r, None), c, DEVICE)[0], None), x, None, length=2
    )[0],
    "in lanes": lambda x: ph.pmap(lambda r: r + DEVICE.sum())(x + jnp.zeros(2)),
}  # fmt: skip


@pytest.mark.parametrize("use", USES)
def test_the_program_computes_the_same_of_its_constants(use):
    program = ph.make_program(USES[use])(X)
    made = lifted(program)
    assert sum(c.value is DEVICE for c in made.constants) == 1
    again = lifted(made.program)
    assert again.program is made.program and not again.constants
    values = [c.value for c in made.constants]
    for got, wanted in zip(
        evaluate(made.program, [*values, X]), evaluate(program, [X]), strict=True
    ):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(("constant", "taken"), [(LARGE, True), (SMALL, False)])
def test_numpy_arrays_are_written_up_to_a_size(constant, taken):
    made = lifted(ph.make_program(lambda x: lax.add(x, constant))(constant))
    assert [c.type.shape for c in made.constants] == [constant.shape] * taken


def test_a_program_without_constants_is_itself():
    program = ph.make_program(jnp.sin)(X)
    assert lifted(program).program is program
