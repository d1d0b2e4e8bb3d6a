"""Fourier transforms by the rules of GPUs, which a CPU can run as well."""

import numpy as np
import pytest

import phalanx
from phalanx.core.primitive import Primitive
from phalanx.primitives.fft import fft

SOURCE = np.random.default_rng(0)


def drawn(*shape):
    return (SOURCE.normal(size=shape) + 1j * SOURCE.normal(size=shape)).astype(np.complex64)


TRANSFORMS = [
    ("IRFFT", (2, 4, 3), (4, 5)),
    ("IRFFT", (4, 3, 3), (4, 3, 4)),
    ("IRFFT", (3,), (4,)),
    ("IRFFT", (0, 3), (4,)),
    ("RFFT", (2, 3, 5), (3, 5)),
    ("RFFT", (2, 3, 4), (2, 3, 4)),
    ("FFT", (3, 4), (3, 4)),
]


@pytest.mark.parametrize("platform", ["gpu", "rocm"])
def test_transforms_are_those_of_numpy(monkeypatch, platform):
    def lowering(prim, _):
        return prim.lower_on[platform] if prim is fft else prim.lower

    monkeypatch.setattr(Primitive, "lowering", lowering)
    for kind, shape, lengths in TRANSFORMS:
        x = drawn(*shape)
        x = x.real if kind == "RFFT" else x
        wanted = getattr(np.fft, f"{kind.lower()}n")(x, lengths, range(-len(lengths), 0))
        found = phalanx.jit(lambda x, k=kind, n=lengths: fft(x, kind=k, lengths=n))(x)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5, err_msg=f"{kind} {shape}")


@pytest.mark.parametrize(("platform", "count"), [("cpu", 1), ("tpu", 1), ("cuda", 2), ("rocm", 2)])
def test_gpus_transform_the_last_dimension_by_itself(platform, count):
    traced = phalanx.jit(lambda x: fft(x, kind="IRFFT", lengths=(4, 4))).trace(drawn(4, 3))
    assert traced.lower(lowering_platforms=(platform,)).as_text().count("stablehlo.fft") == count
