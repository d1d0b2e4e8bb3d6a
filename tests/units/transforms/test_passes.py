"""What happens to a program before it is written: in every sub-program, but not inside lanes."""

import numpy as np
import pytest

import phalanx as ph
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.base.extended import is_key
from phalanx.core.program import Program
from phalanx.errors import ProgramError
from phalanx.transforms import passes
from phalanx.transforms.passes import everywhere, ready
from phalanx.transforms.stage import evaluate

X = np.arange(4.0, dtype=np.float32)
SIN = ph.make_program(jnp.sin)(X).equations[0].prim
COS = ph.make_program(jnp.cos)(X).equations[0].prim


def sines(program: Program) -> Program:
    """Cosines become sines."""
    if COS not in {e.prim for e in program.equations}:
        return program
    other = [
        Program.of_one(SIN, [a.type for a in e.inputs], {}, "").equations[0].update(
            inputs=e.inputs, outputs=e.outputs
        )
        if e.prim is COS
        else e
        for e in program.equations
    ]  # fmt: skip
    return program.update(equations=other)


def test_a_change_reaches_sub_programs_of_all_kinds():
    def f(x):
        x = ph.jit(jnp.cos)(x)
        x = lax.cond(x[0] > 0, jnp.cos, jnp.tan, x)
        x = lax.while_loop(lambda x: jnp.cos(x)[0] > 9, lambda x: jnp.cos(x), x)
        return lax.scan(lambda c, r: (lax.cond(r > 0, jnp.cos, jnp.tan, c), None), x, x)[0]

    program = ph.make_program(f)(X)
    change = everywhere(sines)
    changed = change(program)
    assert COS in program.primitives and COS not in changed.primitives
    assert change(changed) is changed and change(program) is changed
    assert [e.prim for e in changed.equations] == [e.prim for e in program.equations]


def test_lanes_are_left_as_they_are():
    program = ph.make_program(ph.pmap(jnp.cos))(X)
    assert everywhere(sines)(program) is program


def test_a_program_that_is_ready_has_neither_keys_nor_large_constants():
    large = jnp.arange(5000.0)
    key = ph.random.key(1)

    def f(x):
        return ph.jit(lambda x: x.sum() + large.sum())(x) + ph.random.normal(key)

    program = ph.make_program(f)(X)
    made = ready(program)
    atoms = [a for e in made.program.walk() for a in (*e.inputs, *e.outputs)]
    assert not any(is_key(a.type.dtype) for a in atoms)
    values = [c.value for c in made.constants]
    assert any(v is large for v in values)
    words = [ph.random.key_data(v) if is_key(v.dtype) else v for v in values]
    (got,) = evaluate(made.program, [*words, X])
    np.testing.assert_allclose(got, evaluate(program, [X])[0], rtol=1e-6)


def test_programs_are_checked_after_each_pass(monkeypatch):
    def without_the_first(program):
        return program.update(equations=program.equations[1:])

    monkeypatch.setattr(passes, "WITHIN", (*passes.WITHIN, without_the_first))
    with (
        ph.enable_checks(),
        pytest.raises(ProgramError, match=r"after the pass .*: .* before it is defined"),
    ):
        ph.jit(lambda x: jnp.cos(jnp.sin(x)))(1.0)
