"""``checkpoint``: functions whose derivatives compute values again instead of storing them."""

# Users' arguments are looked at, whatever their types should be.
# pyright: reportUnnecessaryIsInstance=false

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, overload

import numpy as np

from phalanx.api.aot import ShapeDtypeStruct, abstract, struct
from phalanx.api.arguments import (
    NO_STATIC,
    Flat,
    LeafNames,
    Static,
    check_callable,
    check_leaf,
    split_static,
)
from phalanx.api.jit import Jitted
from phalanx.api.transformed import Compiling, P, R, Wrapped
from phalanx.base import dtypes, tree
from phalanx.base.keys import key_of
from phalanx.base.source import name_of, user_location
from phalanx.control.checkpoint_call import checkpoint as checkpoint_program
from phalanx.control.policies import MAKERS, nothing_saveable
from phalanx.control.saved_residuals import residuals
from phalanx.core.program import Program
from phalanx.primitives.naming import named
from phalanx.transforms.remat_partition import Policy
from phalanx.transforms.stage import stage


class Checkpointed(Jitted):
    """A function whose derivative computes again what the policy does not let it store."""

    kind = "checkpoint"

    def __init__(
        self, fun: Callable[..., Any], policy: Policy, prevent_cse: bool, **static: Any
    ) -> None:
        super().__init__(fun, **static)
        self.policy = policy
        self.prevent_cse = prevent_cse

    def _split(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Static, tuple[Any, ...], dict[str, Any]]:
        nums, names = self.static_nums, self.static_names
        return split_static(args, kwargs, nums, names, self.who, _key_or_none_like_it)

    def _run(self, program: Program, operands: Sequence[Any]) -> Sequence[Any]:
        return checkpoint_program(
            *operands,
            program=program,
            policy=self.policy,
            prevent_cse=self.prevent_cse,
            again=False,
        )


def _key_or_none_like_it(value: Any) -> Any:
    """What stands for a static value; of one that cannot be hashed, and may change, another each
    time: then the function is traced anew."""
    try:
        key = key_of(value)
        hash(key)
    except TypeError:
        return object()
    return key


@overload
def checkpoint(
    fun: Callable[P, R],
    *,
    prevent_cse: bool = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
) -> Wrapped[P, R]: ...
@overload
def checkpoint(
    fun: None = None,
    *,
    prevent_cse: bool = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
) -> Compiling: ...
def checkpoint(
    fun: Callable[..., Any] | None = None,
    *,
    prevent_cse: bool = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
) -> Any:
    """Rematerialize (gradient checkpointing): the derivative of ``fun`` stores its arguments, and
    recomputes intermediate values.

    Values and derivatives are those of ``fun``. Reverse mode otherwise stores intermediate
    values from the time they are computed until the cotangents arrive; now it takes the memory
    for one checkpointed part at a time, and as much again of the time of the forward pass.

    Args:
        fun: a function of trees of arrays that returns a tree of arrays. Without it, a
            decorator with these options is returned.
        prevent_cse: whether to keep the compiler from noticing that it computes something
            twice and storing it after all. False is right, and faster, in the body of a
            ``scan``, where it cannot notice.
        policy: what may be stored all the same: a function ``(primitive, *types, **params) ->
            bool``, such as those in ``checkpoint_policies``; None for nothing.
        static_argnums: positions of arguments that are Python values, fixed while tracing; for
            one that cannot be hashed ``fun`` is traced at every call.
        static_argnames: the same by name.

    Returns:
        A function with the parameters and results of ``fun``.

    Raises:
        TypeError: an argument is no array, the policy is no function or does not return a
            bool, or ``fun`` needs the value of a traced argument.

    >>> import phalanx, phalanx.numpy as jnp
    >>> layer = phalanx.checkpoint(lambda w, x: jnp.tanh(x @ w))
    >>> loss = lambda w: jnp.sum(layer(w, layer(w, jnp.ones(2))))
    >>> phalanx.grad(loss)(jnp.zeros((2, 2)))
    Array([[0., 0.],
           [0., 0.]], dtype=float32)
    """
    options: dict[str, Any] = {
        "prevent_cse": prevent_cse,
        "policy": policy,
        "static_argnums": None if static_argnums == () else static_argnums,
        "static_argnames": static_argnames or None,
    }
    if fun is None:
        return functools.partial(checkpoint, **options)
    check_callable(fun, "checkpoint")
    who = f"checkpoint({name_of(fun)})"
    if not isinstance(prevent_cse, (bool, np.bool_)):
        raise TypeError(f"{who}: prevent_cse must be True or False, got {prevent_cse!r}")
    _check_policy(policy, who)
    options["policy"] = policy or nothing_saveable
    return Checkpointed(fun, **options).function()


def _check_policy(policy: Any, who: str) -> None:
    if policy in MAKERS:
        raise TypeError(
            f"{who}: {policy.__name__} makes a policy, and is none itself; call it first, as in "
            'save_only_these_names("hidden")'
        )
    if policy is not None and not callable(policy):
        raise TypeError(
            f"{who}: policy must be a function (primitive, *types, **params) -> bool, got "
            f"{policy!r} of type {type(policy).__name__}; phalanx.checkpoint_policies has some"
        )


remat = checkpoint


def _saving(name: str, there: str) -> Callable[..., NoReturn]:
    def saves(*_: Any, **__: Any) -> NoReturn:
        raise AttributeError(
            f"checkpoint.{name}: phalanx.checkpoint recomputes activations in derivatives, and has "
            f"nothing to do with files, at {user_location()}; use "
            f"phalanx.experimental.checkpoint.{there}"
        )

    return saves


for _name, _there in (("save", "save"), ("restore", "restore"), ("load", "restore")):
    setattr(checkpoint, _name, _saving(_name, _there))


def checkpoint_name(x: Any, name: str) -> Any:
    """``x``, under a name by which policies of ``checkpoint`` know it.

    Args:
        x: a tree of arrays. Every array gets the name.
        name: a string.

    Returns:
        A tree like ``x``.

    Raises:
        TypeError: the name is not a string, or a leaf of ``x`` is no array.

    >>> import phalanx, phalanx.numpy as jnp
    >>> from phalanx.ad_checkpoint import checkpoint_name
    >>> checkpoint_name(jnp.arange(3), "positions")
    Array([0, 1, 2], dtype=int32)
    """
    if not isinstance(name, str):
        raise TypeError(
            f"checkpoint_name: the name must be a string, got {name!r} of type "
            f'{type(name).__name__}; the value comes first: checkpoint_name(x, "hidden")'
        )
    for path, leaf in tree.leaves_with_path(x):
        check_leaf(leaf, f"x{tree.keystr(path)}", "checkpoint_name")
    return tree.map(lambda leaf: named(leaf, name=name), x)


def saved_residuals(
    f: Callable[P, Any], *args: Any, **kwargs: Any
) -> list[tuple[ShapeDtypeStruct, str]]:
    """What reverse mode through ``f`` at these arguments stores, without computing anything.

    Args:
        f: a function of trees of arrays.
        *args: arrays, numbers, or ``ShapeDtypeStruct``.
        **kwargs: arrays, numbers, or ``ShapeDtypeStruct``, passed by name.

    Returns:
        For each stored value its shape and dtype, and what it is: an argument, a named value,
        or the result of an operation, with the user's line.

    >>> import phalanx, phalanx.numpy as jnp
    >>> saved_residuals(phalanx.checkpoint(lambda x: jnp.sin(jnp.sin(x))), 1.0)
    [(ShapeDtypeStruct(shape=(), dtype=float32), 'from the argument x')]
    """
    return [(struct(t), origin) for t, origin in _residuals(f, args, kwargs, "saved_residuals")]


def print_saved_residuals(f: Callable[P, Any], *args: Any, **kwargs: Any) -> None:
    """Print what reverse mode through ``f`` at these arguments stores, a value a line.

    Arguments are those of ``saved_residuals``.

    Args:
        f: a function of trees of arrays.
        *args: arrays, numbers, or ``ShapeDtypeStruct``.
        **kwargs: arrays, numbers, or ``ShapeDtypeStruct``, passed by name.

    >>> import phalanx, phalanx.numpy as jnp
    >>> f = phalanx.checkpoint(lambda w, x: jnp.tanh(jnp.tanh(x @ w)))
    >>> print_saved_residuals(f, jnp.ones((3, 3)), jnp.ones(3))
    f32[3,3] from the argument w
    f32[3] from the argument x
    """
    for kind, origin in _residuals(f, args, kwargs, "print_saved_residuals"):
        print(f"{kind!r} {origin}")


def _residuals(
    f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], kind: str
) -> list[Any]:
    check_callable(f, kind)
    who = f"{kind}({name_of(f)})"
    leaves, treedef = tree.flatten((args, kwargs))
    names = LeafNames(f, args, kwargs, range(len(args)))
    types = [abstract(x, names, i, who) for i, x in enumerate(leaves)]
    program, captured = stage(Flat(f, treedef, NO_STATIC, who), types, name_of(f), names.all())
    fixed = [False] * len(captured)
    active = (*fixed, *(dtypes.is_inexact(t.dtype) for t in types))
    origins = ["captured from outside"] * len(captured)
    return residuals(program, active, [*origins, *(f"from the argument {n}" for n in names.all())])
