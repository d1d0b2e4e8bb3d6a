"""Programs written straight through the builder, on CPU devices."""

import numpy as np
import pytest

from phalanx.core.types import ArrayType
from phalanx.spmd.layout import from_axes
from phalanx.spmd.named import P
from phalanx.spmd.plan import Plan
from phalanx.spmd.sharding import Sharding
from phalanx.xla import XlaBackend
from phalanx.xla.lower import build

MESH = (("m0", 2), ("m1", 2), ("m2", 2))
ALL = ("m0", "m1", "m2")


def type_of(x):
    return ArrayType(x.shape, x.dtype)


@pytest.fixture(scope="session")
def backend():
    return XlaBackend()


@pytest.fixture(scope="session")
def devices(backend):
    """Eight CPU devices."""
    found = backend.devices("cpu")
    if len(found) < 8:
        pytest.skip("needs 8 CPU devices")
    return found[:8]


@pytest.fixture(scope="session")
def one(backend):
    """The sharding of a single device."""
    return Sharding(backend.devices("cpu")[:1])


@pytest.fixture(scope="session")
def run(backend, one):
    """run(emit, inputs, like): the outputs of a program, of the types of ``like``."""

    def run(emit, inputs, like):
        inputs, like = [np.asarray(x) for x in inputs], [np.asarray(x) for x in like]
        lowered = build(map_types(inputs), map_types(like), Plan(one.device_list), emit)
        raws = [backend.put(x, type_of(x), one) for x in inputs]
        outs = backend.compile(lowered)(raws)
        return [backend.fetch(o, type_of(x), one) for o, x in zip(outs, like, strict=True)]

    return run


@pytest.fixture(scope="session")
def check(run):
    """check(emit, inputs, expected): run the program and compare."""

    def check(emit, inputs, expected, rtol=1e-5, atol=1e-6):
        for got, want in zip(run(emit, inputs, expected), expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)

    return check


@pytest.fixture(scope="session")
def manual(backend, devices):
    """manual(body, inputs, in_dims, like, out_dims): run ``body`` on eight devices."""

    def manual(body, inputs, in_dims, like, out_dims):
        types, out_types = map_types(inputs), map_types(like)

        def emit(b, *values):
            return b.manual_computation(values, in_dims, out_dims, out_types, body)

        plan = Plan(devices, MESH, tuple(map(P.of, in_dims)), tuple(map(P.of, out_dims)))
        executable = backend.compile(build(types, out_types, plan, emit))
        raws = [
            backend.put(x, t, from_axes(devices, MESH, dims))
            for x, t, dims in zip(inputs, types, in_dims, strict=True)
        ]
        outs = executable(raws)
        return [
            backend.fetch(o, t, s)
            for o, t, s in zip(outs, out_types, executable.out_shardings, strict=True)
        ]

    return manual


def map_types(arrays):
    return [type_of(np.asarray(x)) for x in arrays]
