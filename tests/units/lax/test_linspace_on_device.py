import phalanx
import phalanx.numpy as jnp


def test_a_device_that_is_named_is_the_one():
    last = phalanx.devices()[-1]
    for x in (
        jnp.linspace(0, 1, 5, device=last),
        *jnp.linspace(0, 1, 5, retstep=True, device=last)[:1],
    ):
        assert x.devices() == {last}
        assert x.committed
