"""Whatever call the peer's signatures allow, ours allow, too, with the same defaults."""

import importlib
import inspect
import warnings

from docs.generator import public
from tests.exemptions import exemptions
from tests.releases import OLDER

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
        found |= {f"{name}.{parameter}": how for parameter, how in differences(ours, theirs)}
    explained = {*exemptions("signatures")}
    former = {*exemptions("signatures-of-older-jax")} if OLDER else set()
    assert {name: how for name, how in found.items() if name not in explained | former} == {}
    assert count > 1000 and (OLDER or explained == {*found})
