"""Random bits of XLA's own generators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phalanx import primitives as ops
from phalanx.base import dtypes
from phalanx.base.choices import IntChoice
from phalanx.core.types import Array, typeof
from phalanx.lax.layout import with_sharding_constraint
from phalanx.lax.operands import accept, elementwise, integers
from phalanx.primitives.basis import check_lengths


class RandomAlgorithm(IntChoice):
    """A generator: the platform's own, Threefry-2x32 or Philox-4x32 in 10 rounds.

    >>> philox = lax.RandomAlgorithm.RNG_PHILOX
    >>> key, bits = lax.rng_bit_generator(jnp.zeros(4, "uint32"), (3,), algorithm=philox)
    >>> bits.shape, bits.dtype
    ((3,), dtype('uint32'))
    """

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2


_NAMES = {
    RandomAlgorithm.RNG_DEFAULT: "default",
    RandomAlgorithm.RNG_THREE_FRY: "three_fry",
    RandomAlgorithm.RNG_PHILOX: "philox",
}


def rng_bit_generator(
    key: Any,
    shape: Sequence[int],
    dtype: Any = np.uint32,
    algorithm: RandomAlgorithm = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: Any = None,
) -> tuple[Array, Array]:
    """Random bits, and the key with which to go on.

    Which bits is up to the platform and to the version of XLA, unless an algorithm is chosen.

    Args:
        key: uint32[4] or uint64[2].
        shape: of the bits.
        dtype: of the bits: uint8, uint16, uint32 or uint64.
        algorithm: which generator.
        out_sharding: how the bits are to lie over devices, a sharding or a spec under the mesh
            that is set.

    Returns:
        The key afterwards, and the bits.

    Raises:
        TypeError: the key or ``dtype`` is another.
        ValueError: a length is negative, or there is no such algorithm.

    >>> key, bits = lax.rng_bit_generator(np.arange(4, dtype=np.uint32), (2, 3))
    >>> bits.shape, bits.dtype
    ((2, 3), dtype('uint32'))
    """
    chosen = dtypes.requested(dtype)
    if not dtypes.is_unsigned(chosen) or dtypes.iinfo(chosen).bits < 8:
        raise TypeError(
            f"lax.rng_bit_generator: dtype must be uint8, uint16, uint32 or uint64, got {chosen}"
        )
    lengths = integers("rng_bit_generator", "shape", shape)
    check_lengths("lax.rng_bit_generator", lengths)
    drawn = chosen if chosen.itemsize >= 4 else np.dtype(np.uint32)
    key, bits = ops.rng_bit_generator(
        accept("rng_bit_generator", key),
        shape=lengths,
        dtype=drawn,
        algorithm=_NAMES[RandomAlgorithm(algorithm)],
    )
    bits = bits if drawn == chosen else ops.convert(bits, dtype=chosen, weak=False)
    return key, bits if out_sharding is None else with_sharding_constraint(bits, out_sharding)


def rng_uniform(a: Any, b: Any, shape: Sequence[int]) -> Array:
    """Numbers uniform in [a, b), from a state of the device: others in every run.

    ``random.uniform`` is what programs should use that are to be repeated.

    Args:
        a: a scalar.
        b: a scalar of the same dtype.
        shape: the shape of the result: a tuple of integers, or an integer.

    Returns:
        An array of that shape, of the dtype of the bounds.

    Raises:
        TypeError: the bounds are no scalars of one dtype.
        ValueError: a length is negative.

    >>> bool((lax.rng_uniform(np.float32(0), np.float32(1), (5,)) < 1).all())
    True
    """
    lengths = integers("rng_uniform", "shape", shape)
    check_lengths("lax.rng_uniform", lengths)
    low, high = elementwise("rng_uniform", a, b)
    for name, bound in (("a", low), ("b", high)):
        if typeof(bound).shape:
            raise TypeError(f"lax.rng_uniform: {name} must be a scalar, got {typeof(bound)}")
    return ops.rng_uniform(low, high, shape=lengths)
