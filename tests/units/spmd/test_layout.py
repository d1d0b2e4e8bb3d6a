"""Layouts in terms of mesh axes, and the shardings that they are."""

import itertools
import math

import pytest

from phalanx.spmd.layout import axes_of, from_axes, prime_axes
from phalanx.spmd.sharding import Sharding


def _assignments(names, ndim):
    """Every way to deal mesh axes to dimensions, in every order."""
    for chosen in itertools.product(range(ndim + 1), repeat=len(names)):
        for order in itertools.permutations(range(len(names))):
            yield tuple(tuple(names[i] for i in order if chosen[i] == dim) for dim in range(ndim))


@pytest.mark.parametrize("sizes", [(2, 2, 2), (2, 3), (3, 2, 2)])
def test_axes_and_tiles_are_inverse(sizes):
    axes = tuple((f"m{i}", n) for i, n in enumerate(sizes))
    devices = tuple(range(math.prod(sizes)))
    for dims in set(_assignments([n for n, _ in axes], 2)):
        sharding = from_axes(devices, axes, dims)
        assert axes_of(sharding, 2, axes) == dims


def test_every_iota_tiling_has_prime_axes():
    for count in range(1, 33):
        for parts in (d for d in range(1, count + 1) if count % d == 0):
            s = Sharding(range(count), (parts,))
            axes = prime_axes(count, s)
            assert math.prod(n for _, n in axes) == count
            dims = axes_of(s, 1, axes)
            assert dims is not None and from_axes(range(count), axes, dims) is s


def test_inexpressible_shardings():
    axes = (("m0", 2), ("m1", 3))
    assert axes_of(Sharding(range(6), (3,)), 1, axes) is None
    assert axes_of(Sharding(range(6), (6,), (1, 0, 2, 3, 4, 5)), 1, axes) is None
    assert axes_of(Sharding(range(4), (4,)), 1, axes) is None
    assert axes_of(Sharding([9]), 3, ()) == ((), (), ())
    assert prime_axes(1) == ()
    odd = Sharding(range(6), (6,), (1, 0, 2, 3, 4, 5))
    assert prime_axes(6, odd) == (("m0", 2), ("m1", 3))
