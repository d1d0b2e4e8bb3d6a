"""What completion shows: of modules and of what users hold, names that are public."""

import enum
import types

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from tests.types.test_offered import MODULES

MESH = phalanx.make_mesh((2,), ("a",))
STEP = phalanx.jit(lambda w, x: w * x)
HELD = {
    "an array": lambda: jnp.ones(3),
    "an array over a mesh": lambda: phalanx.device_put(
        jnp.ones(4), phalanx.NamedSharding(MESH, phalanx.P("a"))
    ),
    "a random key": lambda: phalanx.random.key(0),
    "x.at": lambda: jnp.ones(3).at,
    "a reference": lambda: phalanx.new_ref(1.0),
    "a mesh": lambda: MESH,
    "a spec": lambda: phalanx.P("a"),
    "a sharding": lambda: phalanx.NamedSharding(MESH, phalanx.P("a")),
    "the sharding of an array": lambda: jnp.ones(3).sharding,
    "a type": lambda: phalanx.ShapeDtypeStruct((3,), np.float32),
    "x.aval": lambda: jnp.ones(3).aval,
    "a treedef": lambda: phalanx.tree.structure({"a": 1}),
    "a device": lambda: phalanx.devices()[0],
    "what was traced": lambda: STEP.trace(1.0, 2.0),
    "what was lowered": lambda: STEP.lower(1.0, 2.0),
    "what was compiled": lambda: STEP.lower(1.0, 2.0).compile(),
}
TRANSFORMED = {
    "jit": lambda f: phalanx.jit(f),
    "vmap": lambda f: phalanx.vmap(f),
    "pmap": lambda f: phalanx.pmap(f),
    "jvp": lambda f: lambda x: phalanx.jvp(f, (x,), (x,)),
}


def private(names):
    return [name for name in names if name.startswith("_") and not name.startswith("__")]


@pytest.mark.parametrize("name", MODULES)
def test_modules_show_what_is_public(name):
    module = MODULES[name]
    assert not private(dir(module))
    for own in dir(module):
        value = getattr(module, own)
        imported = isinstance(value, types.ModuleType) and value.__name__.partition(".")[0]
        assert not imported or imported == "phalanx", own


@pytest.mark.parametrize("name", MODULES)
def test_instances_of_public_classes_show_what_is_public(name):
    for own, value in vars(MODULES[name]).items():
        if own not in MODULES[name].__all__ or not isinstance(value, type):
            continue
        own_ways = hasattr(value, "_fields") or issubclass(value, enum.Enum)
        if value.__module__.startswith("phalanx.") and not own_ways:
            assert not private(value.__dir__(value)), own  # of its own, without its bases'


@pytest.mark.parametrize("what", HELD)
def test_what_users_hold_shows_what_is_public(what):
    assert not private(dir(HELD[what]()))


@pytest.mark.parametrize("how", TRANSFORMED)
def test_traced_values_show_what_arrays_do(how):
    seen = []
    TRANSFORMED[how](lambda x: seen.append(dir(x)) or x)(jnp.ones(2))
    assert not private(seen[0])
    assert {name for name in dir(jnp.ones(2)) if name[0] != "_"} <= {*seen[0]}
