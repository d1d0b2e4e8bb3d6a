"""What may say how many lanes run at once."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp


@pytest.mark.parametrize("transform", [phalanx.pmap, phalanx.vmap])
def test_an_integer_of_any_kind(transform):
    x = np.arange(3.0, dtype=np.float32)
    for at_once in (2, np.int64(2), np.array(2), jnp.int32(2)):
        assert np.array_equal(transform(lambda x: x + 1, lanes_at_once=at_once)(x), x + 1)


@pytest.mark.parametrize("transform", [phalanx.pmap, phalanx.vmap])
def test_nothing_else(transform):
    for wrong in (True, 2.0, np.float32(2), "some", (2,)):
        with pytest.raises(TypeError, match="lanes_at_once must be a positive integer"):
            transform(lambda x: x, lanes_at_once=wrong)
    for wrong in (0, -1, np.int64(0)):
        with pytest.raises(ValueError, match="lanes_at_once must be a positive integer"):
            transform(lambda x: x, lanes_at_once=wrong)
