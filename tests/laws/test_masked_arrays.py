"""Masked arrays of NumPy are refused wherever elements are taken: no mask is dropped silently."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from tests.exemptions import exemptions
from tests.laws.arguments import ROOMS, calls

MASKED = np.ma.array([1.0, 2.0, 3.0], np.float32, mask=[0, 1, 0])
REFUSED = r"masked array of NumPy, of shape .* at .*x\.filled"


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_function_refuses_them(room):
    accepted = set()
    for call in calls():
        if call.room != room or call.args is None:
            continue
        operands = call.operands()
        for i, x in enumerate(operands):
            try:
                call(*operands[:i], np.ma.array(x), *operands[i + 1 :])
                accepted.add(str(call))
            except ValueError as error:
                assert "masked array" in str(error), call
    assert accepted <= exemptions("masked-refused").keys()


OTHER_WAYS = {
    "jit": lambda m: phalanx.jit(lambda x: x)(m),
    "grad": lambda m: phalanx.grad(lambda x: (x**2).sum())(m),
    "vmap": lambda m: phalanx.vmap(lambda x: x)(m),
    "pmap": lambda m: phalanx.pmap(lambda x: x, devices=phalanx.devices()[:1])(m),
    "a tree": lambda m: phalanx.jit(lambda t: t["x"])({"x": m}),
    "a constant": lambda m: phalanx.jit(lambda: jnp.sum(m))(),
    "a constant of lax": lambda m: phalanx.jit(lambda: lax.neg(m))(),
    "an operator": lambda m: jnp.ones(3) + m,
    "the left of an operator": lambda m: m + jnp.ones(3),
    "a list": lambda m: jnp.array([m, m]),
    "a part": lambda m: jnp.zeros(3).at[:].set(m),
    "an index": lambda m: jnp.zeros(5)[m.astype(int)],
    "a condition": lambda m: jnp.zeros(3)[m > 1],
    "a carry": lambda m: lax.fori_loop(0, 1, lambda i, c: c, m),
    "rows": lambda m: lax.scan(lambda c, x: (c, x), 0, m),
    "a tangent": lambda m: phalanx.jvp(jnp.sin, (np.ones(3, np.float32),), (m,)),
    "no mask": lambda m: jnp.asarray(np.ma.array([1.0])),
    "the masked element": lambda m: jnp.asarray(np.ma.masked),
    "dlpack": lambda m: jnp.from_dlpack(m),
    "a callback": lambda m: phalanx.pure_callback(
        lambda x: m, phalanx.ShapeDtypeStruct((3,), np.float32), 0.0
    ),
}


@pytest.mark.parametrize("way", OTHER_WAYS)
def test_every_other_way_refuses_them(way):
    with pytest.raises(ValueError, match=REFUSED):
        OTHER_WAYS[way](MASKED)


def test_what_the_message_says_works():
    assert jnp.asarray(MASKED.filled(7)).tolist() == [1.0, 7.0, 3.0]
    assert jnp.where(MASKED.mask, 0, MASKED.data).tolist() == [1.0, 0.0, 3.0]
