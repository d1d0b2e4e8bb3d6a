"""Policies: what ``checkpoint`` may store of what it would otherwise compute again.

A policy is a function ``(primitive, *types, **params) -> bool`` of an operation, the types of
its operands and its parameters. It says whether the results of the operation may be stored;
only what a derivative needs is stored then. A policy of one's own may look at the name of the
primitive:

>>> import phalanx, phalanx.numpy as jnp
>>> def sines(prim, *types, **params):
...     return prim.name == "sin"
>>> f = phalanx.checkpoint(lambda x: jnp.tanh(jnp.tanh(jnp.sin(x))), policy=sines)
>>> phalanx.ad_checkpoint.print_saved_residuals(f, jnp.ones(3))  # doctest: +ELLIPSIS
f32[3] from the argument x
f32[3] output of sin from ...
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import Any, Final

from msgspec import Struct

from phalanx.base.boundary import bound
from phalanx.core.primitive import Primitive
from phalanx.primitives.contract import dot_general
from phalanx.primitives.conv import conv_general_dilated
from phalanx.primitives.naming import named
from phalanx.run.put import device_put
from phalanx.spmd.memory_kinds import Space
from phalanx.transforms.remat_partition import OffloadTo, Policy

__all__ = [
    "checkpoint_dots",
    "checkpoint_dots_with_no_batch_dims",
    "dots_saveable",
    "dots_with_no_batch_dims_saveable",
    "everything_saveable",
    "nothing_saveable",
    "offload_dot_with_no_batch_dims",
    "save_and_offload_only_these_names",
    "save_any_names_but_these",
    "save_anything_except_these_names",
    "save_from_both_policies",
    "save_only_these_names",
]


def everything_saveable(*_: Any, **__: Any) -> bool:
    """Store every intermediate value that the derivative needs, as without ``checkpoint``.

    The most memory, and nothing is computed twice. Give the policy itself, without calling it.

    >>> import phalanx
    >>> f = phalanx.checkpoint(jnp.sin, policy=phalanx.checkpoint_policies.everything_saveable)
    >>> float(phalanx.grad(f)(0.0))
    1.0
    """
    return True


def nothing_saveable(*_: Any, **__: Any) -> bool:
    """Store no intermediate value: all are recomputed from the arguments.

    The least memory, for about one more forward pass. This is the policy of ``checkpoint`` where
    none is given. Give the policy itself, without calling it.

    >>> import phalanx
    >>> f = phalanx.checkpoint(jnp.sin, policy=phalanx.checkpoint_policies.nothing_saveable)
    >>> float(phalanx.grad(f)(0.0))
    1.0
    """
    return False


def dots_saveable(prim: Primitive, *_: Any, **__: Any) -> bool:
    """Store the results of matrix products and convolutions, which are expensive to recompute.

    What is cheap (elementwise operations, normalizations) is computed again. Give the policy
    itself, without calling it.

    Args:
        prim: the operation that is asked about.

    >>> import phalanx
    >>> f = phalanx.checkpoint(jnp.dot, policy=phalanx.checkpoint_policies.dots_saveable)
    >>> print(phalanx.grad(f)(jnp.ones(2), jnp.arange(2.0)))
    [0. 1.]
    """
    return prim in (dot_general, conv_general_dilated)


def dots_with_no_batch_dims_saveable(prim: Primitive, *_: Any, **params: Any) -> bool:
    """Store the results of contractions without batch dimensions.

    In a transformer these are the products with weights; the products of queries and keys,
    which grow with the square of the length, have batch dimensions and are computed again.

    Args:
        prim: the operation that is asked about.
        params: its parameters.

    >>> import phalanx
    >>> policy = phalanx.checkpoint_policies.dots_with_no_batch_dims_saveable
    >>> f = phalanx.checkpoint(jnp.dot, policy=policy)
    >>> print(phalanx.grad(f)(jnp.ones(2), jnp.arange(2.0)))
    [0. 1.]
    """
    return prim is dot_general and not any(params["batch"])


checkpoint_dots = dots_saveable
checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable


class Names(Struct, frozen=True):
    """A policy by name: ``listed`` names are granted or refused, all others the reverse.

    ``unnamed`` says whether values without a name are granted.

    Args:
        names: names, as ``checkpoint_name`` gives them.
        listed: whether these are granted, and not all others.
        unnamed: whether values without a name are granted.

    >>> import phalanx
    >>> print(phalanx.checkpoint_policies.save_only_these_names("scores"))
    only scores
    """

    names: frozenset[str]
    listed: bool
    unnamed: bool

    def __call__(self, prim: Primitive, *_: Any, **params: Any) -> bool:
        if prim is not named:
            return self.unnamed
        return self.listed == (params["name"] in self.names)

    def __str__(self) -> str:
        which = "only" if self.listed else "all but"
        rest = ", and what has no name" if self.unnamed else ""
        return f"{which} {', '.join(sorted(self.names)) or 'no name'}{rest}"


class Either(Struct, frozen=True):
    """A policy that grants what one of two grants.

    Args:
        first: a policy.
        second: a policy; it is asked where the first does not store.

    >>> import phalanx
    >>> some = phalanx.checkpoint_policies
    >>> policy = some.save_from_both_policies(some.dots_saveable, some.nothing_saveable)
    >>> policy.second is some.nothing_saveable
    True
    """

    first: Policy
    second: Policy

    def __call__(self, prim: Primitive, *types: Any, **params: Any) -> bool:
        return self.first(prim, *types, **params) or self.second(prim, *types, **params)


def save_only_these_names(*names_which_can_be_saved: str) -> Policy:
    """Store values that ``checkpoint_name`` gave one of these names, and no others.

    Args:
        names_which_can_be_saved: names, as ``checkpoint_name`` gives them.

    Returns:
        A policy for ``checkpoint``.

    >>> import phalanx
    >>> from phalanx.ad_checkpoint import checkpoint_name
    >>> policy = phalanx.checkpoint_policies.save_only_these_names("hidden")
    >>> f = lambda x: checkpoint_name(x * x, "hidden") ** 3
    >>> float(phalanx.grad(phalanx.checkpoint(f, policy=policy))(1.0))
    6.0
    """
    return Names(_checked("save_only_these_names", names_which_can_be_saved), True, False)


def save_any_names_but_these(*names_not_to_save: str) -> Policy:
    """Store values that ``checkpoint_name`` gave a name, except these names.

    Args:
        names_not_to_save: names, as ``checkpoint_name`` gives them.

    Returns:
        A policy for ``checkpoint``.

    >>> import phalanx
    >>> print(phalanx.checkpoint_policies.save_any_names_but_these("scores"))
    all but scores
    """
    return Names(_checked("save_any_names_but_these", names_not_to_save), False, False)


def save_anything_except_these_names(*names_not_to_save: str) -> Policy:
    """Store all values but those that ``checkpoint_name`` gave one of these names.

    What such a value is computed from has no name itself, and may be stored.

    Args:
        names_not_to_save: names, as ``checkpoint_name`` gives them.

    Returns:
        A policy for ``checkpoint``.

    >>> import phalanx
    >>> print(phalanx.checkpoint_policies.save_anything_except_these_names("scores"))
    all but scores, and what has no name
    """
    return Names(_checked("save_anything_except_these_names", names_not_to_save), False, True)


def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
    """A policy that stores what either of two policies stores.

    Args:
        policy_1: a policy, such as ``dots_saveable``.
        policy_2: a second policy; it is asked where the first does not store.

    Returns:
        A policy for ``checkpoint``.

    >>> import phalanx
    >>> p = phalanx.checkpoint_policies
    >>> policy = p.save_from_both_policies(p.dots_saveable, p.save_only_these_names("hidden"))
    """
    return Either(policy_1, policy_2)


def save_and_offload_only_these_names(
    *,
    names_which_can_be_saved: Collection[str],
    names_which_can_be_offloaded: Collection[str],
    offload_src: str,
    offload_dst: str,
) -> Policy:
    """Store values with some names as they are, and those with others in the host's memory.

    There they wait for the derivative, and leave the devices' memory to others. What has neither
    name is computed again.

    Args:
        names_which_can_be_saved: names, as ``checkpoint_name`` gives them.
        names_which_can_be_offloaded: others.
        offload_src: the memory of the devices, "device".
        offload_dst: the memory in which values wait, "pinned_host".

    Returns:
        A policy for ``checkpoint``.

    Raises:
        ValueError: a name is in both, or there is no such memory.

    >>> import phalanx
    >>> from phalanx.ad_checkpoint import checkpoint_name
    >>> policy = phalanx.checkpoint_policies.save_and_offload_only_these_names(
    ...     names_which_can_be_saved=[], names_which_can_be_offloaded=["hidden"],
    ...     offload_src="device", offload_dst="pinned_host")
    >>> f = lambda x: checkpoint_name(x * x, "hidden") ** 3
    >>> float(phalanx.grad(phalanx.checkpoint(f, policy=policy))(1.0))
    6.0
    """
    who = "save_and_offload_only_these_names"
    saved = _checked(who, tuple(names_which_can_be_saved))
    away = _checked(who, tuple(names_which_can_be_offloaded))
    if saved & away:
        raise ValueError(
            f"{who}: {', '.join(sorted(saved & away))} cannot be both saved and offloaded; leave "
            "it out of names_which_can_be_saved or of names_which_can_be_offloaded"
        )
    offloaded = _Offloaded(Names(away, True, False), elsewhere(who, offload_src, offload_dst))
    return Either(Names(saved, True, False), offloaded)


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
    """Store results of contractions without batch dimensions in the host's memory.

    Args:
        offload_src: the memory of the devices, "device".
        offload_dst: the memory in which values wait, "pinned_host".

    Returns:
        A policy for ``checkpoint``.

    Raises:
        ValueError: there is no such memory.

    >>> import phalanx
    >>> make = phalanx.checkpoint_policies.offload_dot_with_no_batch_dims
    >>> f = phalanx.checkpoint(jnp.dot, policy=make("device", "pinned_host"))
    >>> print(phalanx.grad(f)(jnp.ones(2), jnp.arange(2.0)))
    [0. 1.]
    """
    where = elsewhere("offload_dot_with_no_batch_dims", offload_src, offload_dst)
    return _Offloaded(dots_with_no_batch_dims_saveable, where)


class _Offloaded(Struct, frozen=True):
    """What ``policy`` grants is stored elsewhere."""

    policy: Policy
    where: OffloadTo

    def __call__(self, prim: Primitive, *types: Any, **params: Any) -> bool | OffloadTo:
        return self.policy(prim, *types, **params) and self.where

    def __str__(self) -> str:
        return f"{self.policy}, in the memory of the host"


_TO_HOST: Final = OffloadTo(
    device_put,
    {"to": Space.Host, "back": Space.Device},
    {"to": Space.Device, "back": Space.Host},
)


def elsewhere(who: str, src: str, dst: str) -> OffloadTo:
    """Where values are stored that a policy moves from the memory ``src`` to ``dst``."""
    for name, kind, expected in (("src", src, "device"), ("dst", dst, Space.Host.kind)):
        if kind != expected:
            raise ValueError(
                f"{who}: offload_{name} must be {expected!r}, got {kind!r}; values are computed in "
                "the memory of the devices, and wait in that of the host"
            )
    return _TO_HOST


def _checked(who: str, names: tuple[Any, ...]) -> frozenset[str]:
    for name in names:
        if not isinstance(name, str):
            raise TypeError(
                f"{who}: names are strings, each an argument of its own, got {name!r}; "
                f'write {who}("a", "b")'
            )
    return frozenset(names)


bound(sys.modules[__name__])

MAKERS = (
    save_only_these_names,
    save_any_names_but_these,
    save_anything_except_these_names,
    save_from_both_policies,
    save_and_offload_only_these_names,
    offload_dot_with_no_batch_dims,
)  # what they return are policies, they are none
