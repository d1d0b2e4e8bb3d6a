"""A primitive may be lowered in another way on some platforms."""

import importlib
import pkgutil
import re
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

import phalanx
from phalanx import ops
from phalanx.core.primitive import REGISTRY
from phalanx.errors import DeviceError
from phalanx.laws.primitives import Case
from phalanx.spmd.plan import Plan
from phalanx.transforms.passes import ready
from phalanx.xla.lower import lower

KEYS = np.array([3.0, 1.0, 2.0], np.float32)
WORDS = np.arange(4, dtype=np.uint32)


def text_on(platform, f, *args):
    """What ``f`` is lowered to for a device of ``platform``."""
    plan = Plan((SimpleNamespace(platform=platform),))
    return lower(phalanx.make_program(f)(*args), plan).as_text()


def sorted_pair(x, y):
    return ops.sort(x, y, dim=0, num_keys=1, stable=True)


def bits(x):
    return ops.threefry2x32(x, x, x, x, once=True)


@pytest.mark.parametrize("platform, packed", [("cpu", True), ("gpu", True), ("tpu", False)])
def test_keys_are_packed_where_there_are_64_bits(platform, packed):
    assert ("tensor<3xi64>" in text_on(platform, sorted_pair, KEYS, KEYS)) == packed


@pytest.mark.parametrize("platform, looped", [("cpu", True), ("gpu", False), ("tpu", False)])
def test_the_rounds_of_random_bits_are_a_loop_where_they_would_be_repeated(platform, looped):
    assert ("stablehlo.while" in text_on(platform, bits, WORDS)) == looped


def test_platforms_have_names_that_devices_have():
    known = {"cpu", "gpu", "tpu"}
    assert all(set(prim.lower_on) <= known for prim in REGISTRY.values())


# ---- everything ---------------------------------------------------------------------------------


@cache
def programs():
    """Of every operation, at each of its examples."""
    for module in pkgutil.walk_packages(ops.__path__, "phalanx.ops."):
        importlib.import_module(module.name)
    cases = [Case(prim, e) for prim in REGISTRY.values() for e in prim.examples]
    made = ((c.prim.name, phalanx.make_program(c)(*c.operands())) for c in cases)
    return [(name, ready(program).program) for name, program in made]


def refused(platform):
    """The operations that are refused in words; all others are lowered."""
    plan = Plan((SimpleNamespace(platform=platform),))
    names = set()
    for name, program in programs():
        try:
            lower(program, plan)
        except (DeviceError, NotImplementedError) as e:
            assert re.match(f"{name}: |a function of Python|platform_dependent: ", str(e))
            names.add(name)
    return names


FACTORIZATIONS = {
    "det", "eig", "eigh", "geqp3", "geqrf", "hessenberg", "householder_product", "lu", "ormqr",
    "pinv", "qr", "schur", "solve", "svd", "tridiagonal", "tridiagonal_solve",
}  # fmt: skip


@pytest.mark.parametrize(
    ("platform", "missing"),
    [
        ("cpu", set()),
        ("gpu", {*FACTORIZATIONS, "platform_index"}),  # whose example has no function for it
        ("tpu", FACTORIZATIONS),
    ],
)
def test_every_operation_is_lowered_for_every_platform_or_refused(platform, missing):
    assert refused(platform) == missing


def test_calls_of_python_are_refused_where_there_are_none():
    def f(x):
        phalanx.debug.print("{}", x)
        return x

    with pytest.raises(DeviceError, match=r"a function of Python .* platform tpu .*debug\.print"):
        text_on("tpu", f, KEYS)
    assert "xla_ffi_python_gpu_callback" in text_on("gpu", f, KEYS)
