"""Every export that can be written is read, and computes what the function does."""

import contextlib
import importlib
import pkgutil

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
import phalanx.primitives
from phalanx import lax, random
from phalanx.base.extended import is_key
from phalanx.core.primitive import REGISTRY
from phalanx.errors import DeviceError
from phalanx.export import deserialize, export
from phalanx.laws.primitives import Case
from phalanx.sharding import AbstractMesh
from tests.laws.drawn import EVERYTHING, Drawn

for module in pkgutil.iter_modules(phalanx.primitives.__path__, "phalanx.primitives."):
    importlib.import_module(module.name)

CASES = [Case(prim, example) for _, prim in sorted(REGISTRY.items()) for example in prim.examples]
GROUPS = [CASES[i : i + 24] for i in range(0, len(CASES), 24)]


def words(x):
    return np.asarray(random.key_data(x) if is_key(x.dtype) else x)


def same(ours, theirs, who):
    pairs = zip(phalanx.tree.leaves(ours), phalanx.tree.leaves(theirs), strict=True)
    for x, y in pairs:
        assert (x.dtype, x.shape) == (y.dtype, y.shape), who
        np.testing.assert_array_equal(words(x), words(y), err_msg=who)


def through_bytes(f, *args):
    return deserialize(export(f)(*args).serialize()).call(*args)


@pytest.mark.parametrize("group", GROUPS, ids=lambda g: f"{g[0].prim.name}-{g[-1].prim.name}")
def test_every_primitive_is_read_again(group):
    @phalanx.jit
    def every(operands):
        return [case(*xs) for case, xs in zip(group, operands, strict=True)]

    operands = [case.operands() for case in group]
    found = through_bytes(every, operands)
    for case, x, y in zip(group, found, every(operands), strict=True):
        same(x, y, case.who("exported"))


def numbers(keys):
    """Each key as one number, whose bits are its words."""
    return np.ascontiguousarray(words(keys)).view(np.uint64)[..., 0]


def test_operations_that_move_keys_move_all_of_their_words():
    """As NumPy moves numbers of so many bits."""
    few = np.random.default_rng(0).integers(3, size=(2, 2, 3, 2), dtype=np.uint32)
    keys, others = random.wrap_key_data(few)

    def moved(np, x, y):
        some = np.arange(3) < 2
        kept = np.concatenate([x, y]), np.where(some, x, y), x == y, x != y
        return *kept, x.T, np.flip(x, 1)[1], x.reshape(3, 2)[::2], np.repeat(x, 2, 1)

    def every(x, y):
        read = random.wrap_key_data(random.key_data(x[jnp.array([1, 0])]))
        return *moved(jnp, x, y), read, *lax.optimization_barrier((x, y))

    found = through_bytes(phalanx.jit(every), keys, others)
    x, y = map(numbers, (keys, others))
    for ours, expected in zip(found, (*moved(np, x, y), x[::-1], x, y), strict=True):
        np.testing.assert_array_equal(numbers(ours) if is_key(ours.dtype) else ours, expected)


@pytest.mark.parametrize("platform", ["tpu", "cuda", "rocm"])
def test_every_primitive_is_read_for_other_platforms(platform):
    def every(cases):
        f = phalanx.jit(lambda xs: [case(*x) for case, x in zip(cases, xs, strict=True)])
        return export(f, platforms=[platform])([case.operands() for case in cases])

    written = []
    for case in CASES:
        with contextlib.suppress(DeviceError, NotImplementedError):  # it is computed elsewhere
            every([case])
            written.append(case)
    assert len(written) > 0.9 * len(CASES)
    assert deserialize(every(written).serialize()).platforms == (platform,)


ATTENTION = [
    {"is_causal": True},
    {"query_seq_lengths": jnp.array([2, 3]), "key_value_seq_lengths": jnp.array([1, 3])},
    {"bias": jnp.ones((2, 4, 4, 4), "float16")},
    {"local_window_size": (2, 0), "is_causal": True},
]


@pytest.mark.parametrize("how", ATTENTION, ids=lambda how: next(iter(how)))
@pytest.mark.parametrize("spread", [False, True])
def test_attention_of_cudnn_is_read_with_its_derivative(how, spread):
    """For which the kernel is told what it computes, and the partitioner how to cut it."""
    mesh = AbstractMesh((2,), ("data",))
    x = phalanx.ShapeDtypeStruct((2, 4, 4, 16), "float16")
    f = phalanx.jit(
        lambda q, k, v: phalanx.nn.dot_product_attention(q, k, v, implementation="cudnn", **how),
        in_shardings=phalanx.NamedSharding(mesh, phalanx.P("data")) if spread else None,
    )
    made = export(f, platforms=["cuda"])(x, x, x)
    assert "phalanx_by_block" in made.mlir_module() if spread else "fmha" in made.mlir_module()
    assert deserialize(made.serialize(vjp_order=1)).nr_devices == 1 + spread


AROUND = [Drawn(((name, Drawn((("sin", 0), ("row", 1)))),)) for name in EVERYTHING]


@pytest.mark.parametrize("program", AROUND, ids=EVERYTHING)
def test_functions_that_hold_programs_are_read_again(program):
    args = program.arguments()
    f = phalanx.jit(lambda *xs: program(*xs))
    same(through_bytes(f, *args), f(*args), str(program))
