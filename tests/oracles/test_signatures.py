"""Whatever call the peer's signatures allow, ours allow, too, with the same defaults."""

import importlib
import inspect
import warnings

from docs.generator import public
from tests.releases import OLDER

# What differs, and why.
DIFFERENT = {
    "a folder for what is measured must be named": ["profiler.trace log_dir"],
    "by name, as elsewhere": [
        f"{name} out_sharding"
        for name in (
            "numpy.histogram", "lax.conv_general_dilated", "lax.ragged_dot",
            "lax.ragged_dot_general", "lax.reduce",
            "ops.segment_max", "ops.segment_min", "ops.segment_prod", "ops.segment_sum",
        )
    ],
    "the names that the function has in numpy": ["dtypes.issubdtype a", "dtypes.issubdtype b"],
    "steps that suit the dtype": ["test_util.check_jvp eps", "test_util.check_vjp eps"],
    "an axis of a torus serves several of a mesh, where else there would be none": [
        "experimental.mesh_utils.create_device_mesh allow_split_physical_axes",
        "experimental.mesh_utils.create_hybrid_device_mesh allow_split_physical_axes",
    ],
    "pictures are drawn alike": [
        "debug.visualize_sharding scale", "debug.visualize_sharding color_map",
    ],
    "functions are methods": [
        "experimental.sparse.bcoo_todense mat", "experimental.sparse.bcsr_todense mat",
    ],
    "new there, and said of no use": [
        "vmap sum_match",
        *(
            f"{name} {parameter}"
            for name in ("custom_gradient", "custom_derivatives.custom_gradient")
            for parameter in ("fun", "with_logs", "remat", "with_accums")
        ),
    ],
}  # fmt: skip
FORMER = {  # of older releases alone
    "checkpoint concrete", "remat concrete", "make_mesh axis_shapes", "numpy.polyval unroll",
    "numpy.take_along_axis wrap_negative_indices",
}  # fmt: skip

NAMED, ONLY_NAMED = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
REST = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
PLAIN = (bool, int, float, str, tuple, type(None))  # defaults that can be compared


def peers(name):
    """The function of the peer of that name, if there is one."""
    module, _, last = name.replace("phalanx", "jax", 1).rpartition(".")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it will be gone
        try:
            return getattr(importlib.import_module(module), last)
        except (ImportError, AttributeError):
            return None


def parameters(function):
    """Those of its signature by name; None if it does not tell them."""
    try:
        found = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return None
    return None if any(p.kind in REST for p in found.values()) else dict(found)


def differences(ours, theirs):
    """Parameters of a call that theirs allows and ours does not, or takes otherwise."""
    for name, p in theirs.items():
        mine = ours.get(name)
        if name.startswith("_") or (p.kind not in (NAMED, ONLY_NAMED)):
            continue
        if mine is None or mine.kind not in (NAMED, ONLY_NAMED):
            yield name, "is not taken by keyword"
        elif p.kind is NAMED and mine.kind is ONLY_NAMED:
            yield name, "is not taken by position"
        elif p.kind is NAMED and [*ours].index(name) != [*theirs].index(name):
            yield name, "has another position"
        elif isinstance(p.default, PLAIN) and mine.default != p.default:
            yield name, f"defaults to {mine.default!r}, not to {p.default!r}"


def compared():
    """Our public functions that the peer has: a name, our parameters, its."""
    for entry in public.entries():
        for name in (entry.name, *entry.others):
            theirs = peers(name)
            if (
                inspect.isfunction(entry.value)
                and callable(theirs)
                and not isinstance(theirs, type)
            ):
                ours, those = parameters(entry.value), parameters(theirs)
                if ours is not None and those is not None:
                    yield name.removeprefix("phalanx."), ours, those


def test_calls_that_the_peer_takes_are_taken_with_the_same_defaults():
    found, count = {}, 0
    for name, ours, theirs in compared():
        count += 1
        found |= {f"{name} {parameter}": how for parameter, how in differences(ours, theirs)}
    explained = {each for listed in DIFFERENT.values() for each in listed}
    former = FORMER if OLDER else set()
    assert {name: how for name, how in found.items() if name not in explained | former} == {}
    assert count > 1000 and (OLDER or explained == {*found})
