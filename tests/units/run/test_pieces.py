"""Programs in which something is launched by itself: each part runs where it must, in order."""

import numpy as np
import pytest

import phalanx as ph
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.base.errors import DeviceError
from phalanx.core.primitive import REGISTRY, Execution, Primitive
from phalanx.run.array import from_host
from phalanx.run.calls import Prepared, operand_signatures
from phalanx.run.execute import compile_program, lower_program
from phalanx.run.pieces import Pieces, launched, launches

X = np.arange(6, dtype=np.float32).reshape(2, 3)
SEEN = []  # what was launched, in order


class Launch(Prepared):
    """Adds one, outside of any program."""

    names, donate = (), ()

    def __init__(self, sigs):
        self.in_shardings = [s.sharding for s in sigs]
        self.out_sigs = sigs

    def __call__(self, arrays):
        SEEN.append(np.asarray(arrays[0]))
        return [from_host(SEEN[-1] + 1)]


alone = Primitive(
    "alone",
    lambda x: x,
    lambda b, x: b.add(x, b.constant(1, np.dtype(np.float32))),
    batch=lambda axis, values, dims: (alone(*values), dims[0]),
    execution=Execution(launch=lambda program, sigs, donate: Launch(sigs)),
)
del REGISTRY["alone"]  # which has what the laws are about


def once(x):
    return jnp.sin(alone(jnp.cos(x))) * 2


PROGRAMS = {
    "by itself": (alone, lambda x: x + 1, 1),
    "in between": (once, lambda x: np.sin(np.cos(x) + 1) * 2, 1),
    "twice, and both are needed": (
        lambda x: (lambda a: a * alone(a + x) - a)(alone(x)),
        lambda x: (x + 1) * (x + 1 + x + 1) - (x + 1), 2,
    ),
    "in a call": (lambda x: ph.jit(once)(x) + x, lambda x: np.sin(np.cos(x) + 1) * 2 + x, 1),
    "in a branch": (
        lambda x: lax.cond(x[0, 1] > 0, lambda x: alone(x) * 2, lambda x: x, x),
        lambda x: (x + 1) * 2, 1,
    ),
    "in the other branch": (lambda x: lax.cond(x[0, 1] < 0, alone, lambda x: x, x), lambda x: x, 0),
    "beyond the branches": (
        lambda x: lax.switch(7, [lambda x: x, alone, lambda x: alone(x) * 3], x),
        lambda x: (x + 1) * 3, 1,
    ),
    "in a loop": (
        lambda x: lax.while_loop(lambda c: c[1, 2] < 9, lambda c: alone(c) + c[0, 0], x),
        lambda x: x + 1 + 2 + 4, 3,  # c[0, 0] is 0, 1, 3
    ),
    "in the condition of a loop": (
        lambda x: lax.while_loop(lambda c: alone(c)[1, 2] < 9, lambda c: c + 1, x),
        lambda x: x + 3, 4,
    ),
    "in a scan": (
        lambda x: lax.scan(lambda c, r: (alone(c) + r, c * r), x[0], x)[1],
        lambda x: np.stack([x[0] * x[0], (x[0] + 1 + x[0]) * x[1]]), 2,
    ),
    "in a scan from the end": (
        lambda x: lax.scan(lambda c, r: (alone(c) + r, c), x[0], x, reverse=True)[1],
        lambda x: np.stack([x[0] + 1 + x[1], x[0]]), 2,
    ),
    "in a scan over nothing": (
        lambda x: lax.scan(lambda c, r: (alone(c), c + r), x[0], x[:0])[0], lambda x: x[0], 0,
    ),
    "in lanes": (
        lambda x: ph.pmap(lambda r: alone(r) * 2)(x), lambda x: (x + 1) * 2, 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_computes_what_the_parts_compute(name):
    f, expected, count = PROGRAMS[name]
    SEEN.clear()
    program = ph.make_program(f)(X)
    only = program.only if name == "by itself" else None
    assert launches(program) and launched(program) is only
    x = jnp.asarray(X)
    made = compile_program(program, operand_signatures([x]))
    assert isinstance(made, Launch if name == "by itself" else Pieces)
    (got,) = made([x])
    np.testing.assert_allclose(got, expected(X), rtol=1e-6)
    assert len(SEEN) == count


def test_each_piece_is_compiled_once(caplog):
    x, y = jnp.asarray(X), jnp.asarray(X + 1)
    f = ph.jit(lambda x: once(x))
    with ph.log_compiles():
        f(x)
        assert len(caplog.records) == 2
        f(y)
        assert len(caplog.records) == 2
    np.testing.assert_allclose(SEEN[-1], np.cos(X + 1), rtol=1e-6)


def test_there_is_no_module_for_the_whole():
    program = ph.make_program(once)(X)
    sigs = operand_signatures([jnp.asarray(X)])
    made = compile_program(program, sigs)
    module = lower_program(program, sigs)
    asked = [lambda: made.executable, lambda: made.out_sigs, module.as_text, module.ir]
    for look in asked:
        with pytest.raises(DeviceError, match=r"no one module .* make_program shows"):
            look()


def test_what_is_donated_is_freed_at_the_end_unless_it_is_returned():
    program = ph.make_program(lambda x, y: (once(x), y))(X, X)
    x, y = jnp.asarray(X), jnp.asarray(X + 1)
    made = compile_program(program, operand_signatures([x, y]), (0, 1))
    _, same = made([x, y])
    assert x.is_deleted() and not y.is_deleted()
    np.testing.assert_array_equal(same, X + 1)
