"""Failed calls leave the arrays alone that they would have taken."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp

ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)


def failing_calls():
    """Functions that donate their first argument and fail, each given an array."""

    def add(x, y):
        return x + y

    jitted = phalanx.jit(add, donate_argnums=0)
    mapped = phalanx.pmap(add, donate_argnums=0)
    branching = phalanx.pmap(lambda x: x if x.sum() > 0 else -x, donate_argnums=0)
    deleted = jnp.ones((4, 3))
    deleted.delete()

    def compiled(x):
        return mapped.lower(ROWS, ROWS).compile()(x, ROWS.astype(np.int32))

    def with_warm_cache(x):
        mapped(jnp.array(ROWS), ROWS)
        mapped(x, deleted)

    def nan(x):
        with phalanx.config.override(debug_nans=True):
            phalanx.pmap(lambda x: x / (x - x), donate_argnums=0)(x)

    return {
        "another argument is no array": lambda x: jitted(x, "y"),
        "another argument is deleted": lambda x: jitted(x, deleted),
        "another argument is deleted, the function compiled": with_warm_cache,
        "sizes disagree": lambda x: mapped(x, ROWS[:2]),
        "shapes do not fit": lambda x: mapped(x, np.ones((4, 2), np.float32)),
        "the tree does not fit": lambda x: phalanx.pmap(add, in_axes=((0, 0), 0), donate_argnums=0)(
            x, ROWS
        ),
        "tracing fails": branching,
        "donated and passed again": lambda x: jitted(x, x),
        "out_axes": lambda x: phalanx.pmap(lambda x: x, out_axes=None, donate_argnums=0)(x),
        "compiled for another dtype": compiled,
        "not a number": nan,
    }


@pytest.mark.spmd
@pytest.mark.parametrize("name", failing_calls())
@pytest.mark.parametrize("on_devices", [False, True])
def test_a_failed_call_neither_donates_nor_deletes(name, on_devices):
    x = phalanx.pmap(lambda r: r + 0)(ROWS) if on_devices else jnp.array(ROWS)
    with pytest.raises((TypeError, ValueError, FloatingPointError)):
        failing_calls()[name](x)
    assert not x.is_deleted()
    np.testing.assert_array_equal(x, ROWS)
    np.testing.assert_array_equal(phalanx.pmap(lambda r: r * 2)(x), 2 * ROWS)
