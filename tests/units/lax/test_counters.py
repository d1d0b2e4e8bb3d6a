"""The index of a counting loop is a number, however often the loop runs."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax

MANY = 3_000_000


def largest(f, *args):
    """The most numbers of an array in the program of ``f``."""
    program = phalanx.make_program(f)(*args)
    return max(v.type.size for e in program.walk() for v in e.outputs)


def counted(x):
    return lax.fori_loop(2, MANY, lambda i, c: c + i * x, 0 * x)


@pytest.mark.parametrize(
    "f",
    [
        counted,
        phalanx.jit(counted),
        lambda x: phalanx.jvp(counted, (x,), (x,)),
        lambda x: phalanx.vmap(counted)(jnp.stack([x, x])),
        lambda x: lax.scan(lambda c, _: (c + x, None), 0 * x, None, length=MANY),
        lambda x: lax.fori_loop(0, MANY, lambda i, c: c, x, unroll=4),
    ],
)
def test_there_is_no_array_of_all_numbers(f):
    assert largest(f, 1.0) <= 2


def test_the_rows_that_a_gradient_needs_are_all_that_it_stores():
    slope = phalanx.grad(lambda x: lax.fori_loop(0, 64, lambda i, c: c + x[i] ** 2, 0.0))
    x = np.arange(100, dtype="f")
    np.testing.assert_array_equal(slope(x), np.where(x < 64, 2 * x, 0))


def test_it_counts():
    assert lax.fori_loop(0, 10_000_000, lambda i, c: c + (i & 1), 0) == 5_000_000
    kinds = []
    lax.fori_loop(-3, 4, lambda i, c: (kinds.append(i.weak_type), c + i)[1], 0)
    assert kinds[0] is True
    for unroll in (1, 2, 3, True):
        rows = lax.fori_loop(-3, 4, lambda i, c: c.at[i].add(i), jnp.zeros(9), unroll=unroll)
        np.testing.assert_array_equal(rows, [0, 1, 2, 3, 0, 0, -3, -2, -1])


def test_what_the_index_does_not_hold():
    with pytest.raises(OverflowError, match=r"fori_loop: .* goes up to 2147483648, at test_count"):
        lax.fori_loop(0, 2**31 + 1, lambda i, c: c + i, 0)
    assert lax.fori_loop(2**31 - 3, 2**31, lambda i, c: i, 0) == 2**31 - 1
    with phalanx.enable_x64(True):
        assert lax.fori_loop(2**40, 2**40 + 3, lambda i, c: c + i, 0) == 3 * 2**40 + 3
        made = phalanx.jit(lambda x: lax.fori_loop(0, 2**40, lambda i, c: c + i, x)).lower(0)
        assert "1099511627776" in made.as_text()


def test_a_scan_of_more_steps_than_int32_holds():
    made = phalanx.jit(lambda x: lax.scan(lambda c, _: (c + 1, None), x, None, length=2**33))
    assert "8589934592" in made.lower(0).as_text()
    made.lower(0).compile()


def test_messages_tell_of_what_the_user_gave():
    with pytest.raises(TypeError, match=r"fori_loop: init_val\['a'\] is .* not an array"):
        lax.fori_loop(0, 3, lambda i, c: c, {"a": object()})
    with pytest.raises(TypeError, match=r"fori_loop: init_val\['a'\] is .* not an array"):
        lax.fori_loop(0, jnp.int32(3), lambda i, c: c, {"a": object()})
    for n in (3, jnp.int32(3)):
        with pytest.raises(TypeError, match=r"starts as \* and the body, .*, returns \(\*, \*\)"):
            lax.fori_loop(0, n, lambda i, c: (c, c), 1.0)
        with pytest.raises(TypeError, match=r"carry\['a'\] starts as f32"):
            lax.fori_loop(0, n, lambda i, c: {"a": jnp.stack([c["a"]] * 2)}, {"a": jnp.ones(2)})
