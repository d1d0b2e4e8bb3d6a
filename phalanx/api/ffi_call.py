"""Functions of other languages: ``ffi_call``, and registering what it calls."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from operator import index
from typing import Any, NoReturn

from phalanx.api.callbacks import check_arguments, declared_types
from phalanx.base.boundary import hiding
from phalanx.base.errors import MissingRule
from phalanx.base.kinds import is_mapping
from phalanx.base.source import user_location
from phalanx.control.foreign_call import Foreign, call_foreign
from phalanx.core.ffi_records import ForeignFunction, Layouts, attributes_of
from phalanx.core.types import ArrayType, typeof
from phalanx.primitives.callback import VMAP_METHODS
from phalanx.run.runtime import backend

TYPED = 4  # the version of calls in modules, whose functions are registered as of version 1


def pycapsule(funcptr: Any) -> Any:
    """A function that ``ctypes`` loaded, in the form in which it is registered.

    Args:
        funcptr: the function: a pointer as of ``ctypes``.

    Returns:
        A capsule.

    >>> import ctypes
    >>> type(pycapsule(ctypes.CDLL(None).abs)).__name__
    'PyCapsule'
    """
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = (
        ctypes.py_object,
        (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p),
    )
    return make(ctypes.cast(funcptr, ctypes.c_void_p), b"xla._CUSTOM_CALL_TARGET", None)


def include_dir() -> str:
    """The directory of the headers that foreign functions are written with, ``xla/ffi/api``.

    >>> import os
    >>> os.path.exists(os.path.join(include_dir(), "xla", "ffi", "api", "ffi.h"))
    True
    """
    return backend().foreign_headers()


def register_ffi_target(
    name: str, fn: Any, platform: str = "cpu", api_version: int = 1, **kwargs: Any
) -> None:
    """Let ``ffi_call`` call a function of another language by ``name``.

    Args:
        name: unique in this process, for each platform.
        fn: the function as ``pycapsule`` gives it; or a dict of such functions by stage:
            "instantiate", "prepare", "initialize", "execute".
        platform: "cpu", "CUDA" or "ROCM".
        api_version: 1 for the typed interface of XLA; 0 for an earlier one.
        **kwargs: handed to XLA.

    Raises:
        TypeError: ``fn`` is neither.
        ValueError: another function is registered by this name.
    """
    functions = fn.values() if is_mapping(fn) else [fn]
    if not all(type(f).__name__ == "PyCapsule" for f in functions):
        raise TypeError(
            f"register_ffi_target({name}): fn must be a PyCapsule, or a dict of them by stage, got "
            f"{fn!r}; phalanx.ffi.pycapsule makes one of a function that ctypes loaded"
        )
    try:
        backend().register_foreign(name, fn, platform, api_version, kwargs)
    except RuntimeError as e:
        raise ValueError(f"register_ffi_target({name}): XLA refuses it: {e}") from None


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Say of a function that it can be cut along the leading dimensions of all that it takes.

    Where the compiler parts the work over devices, it is then called for each part.

    Args:
        name: the name under which the function is registered.

    >>> from phalanx import ffi
    >>> ffi.register_ffi_target_as_batch_partitionable("norm_of_rows")
    """
    backend().register_foreign_batched(name)


def register_ffi_type(name: str, type_registration: Any, platform: str = "cpu") -> None:
    """Register the type of the state that a foreign function keeps between its stages.

    Args:
        name: unique in this process.
        type_registration: a dict with the capsules "type_id" and "type_info".
        platform: "cpu", "CUDA" or "ROCM".

    Raises:
        TypeError: it is no such dict.
        ValueError: XLA refuses it.
    """
    if not is_mapping(type_registration):
        raise TypeError(
            f"register_ffi_type({name}): a dict with the capsules 'type_id' and 'type_info' is "
            f"needed, got {type_registration!r}"
        )
    try:
        backend().register_foreign_type(name, dict(type_registration), platform)
    except RuntimeError as e:
        raise ValueError(f"register_ffi_type({name}): XLA refuses it: {e}") from None


def register_ffi_type_id(name: str, obj: Any, platform: str = "cpu") -> NoReturn:
    """Refused: XLA takes types with what is known of them, by ``register_ffi_type``.

    Args:
        name: unique in this process.
        obj: the number of the type, as the library has it.
        platform: "cpu", "CUDA" or "ROCM".

    Raises:
        ValueError: always.

    >>> from phalanx import ffi
    >>> ffi.register_ffi_type_id("state", None)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: register_ffi_type_id(state): ...
    """
    raise ValueError(
        f"register_ffi_type_id({name}): XLA no longer takes the id of a type alone; use "
        "register_ffi_type(name, {'type_id': ..., 'type_info': ...})"
    )


def ffi_lowering(call_target_name: str, **_: Any) -> NoReturn:
    """Refused: how operations are lowered is no function of the compiler's objects here.

    Args:
        call_target_name: the name under which the function is registered.

    Raises:
        MissingRule: always.

    >>> from phalanx import ffi
    >>> ffi.ffi_lowering("norm")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    phalanx.errors.MissingRule: ffi_lowering(norm): ...
    """
    raise MissingRule(
        f"ffi_lowering({call_target_name}): rules for lowering speak a builder of ours, not MLIR; "
        "call the function with ffi_call, and give the function around it derivatives with "
        "custom_vjp and lanes with vmap_method or custom_vmap"
    )


build_ffi_lowering_function = ffi_lowering


def ffi_call(
    target_name: str,
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_layouts: Sequence[Any] | None = None,
    output_layouts: Any = None,
    input_output_aliases: Mapping[int, int] | None = None,
    custom_call_api_version: int = TYPED,
    legacy_backend_config: str | None = None,
) -> Callable[..., Any]:
    """The function that calls what is registered as ``target_name``, also inside ``jit``.

    It takes arrays by position, and by keyword attributes: booleans, numbers (64 bits, unless they
    are NumPy's), text, NumPy's arrays, and dicts of these.

    Args:
        target_name: what ``register_ffi_target`` was given, or a name that XLA knows.
        result_shape_dtypes: a tree of objects with ``shape`` and ``dtype``, such as
            ``ShapeDtypeStruct``: what the function returns.
        has_side_effect: whether it is called where nobody needs its results; then once for each
            time that the program comes to it.
        vmap_method: what ``vmap`` does. "sequential" calls once per lane; "expand_dims" once, lanes
            leading, where an argument that all lanes share has length one there; "broadcast_all"
            repeats such an argument; "legacy_vectorized" gives it as it is.
        input_layouts: for each argument its dimensions, the outermost in memory first; None: row
            by row.
        output_layouts: the same for each result.
        input_output_aliases: numbers of arguments with those of the results that take over their
            memory.
        custom_call_api_version: of the calls in modules; 4 is the typed interface.
        legacy_backend_config: what a function of an older interface is told in place of attributes.

    Returns:
        A function of arrays, and of attributes by keyword.

    Raises:
        ValueError: there is no such method; a layout or an alias does not fit; a derivative is
            taken by an argument.
        MissingRule: vmap without ``vmap_method``.
        TypeError: an argument is no array, or an attribute is of no such kind.

    XLA registers LAPACK, of matrices that lie column by column:

    >>> import numpy as np, phalanx, phalanx.numpy as jnp
    >>> def factor(a):
    ...     result = phalanx.ShapeDtypeStruct(a.shape, a.dtype)
    ...     info = phalanx.ShapeDtypeStruct((), "int32")
    ...     call = ffi_call("lapack_spotrf_ffi", (result, info), vmap_method="broadcast_all",
    ...                     input_layouts=[(1, 0)], output_layouts=[(1, 0), None])
    ...     return jnp.tril(call(a, uplo=np.uint8(ord("L")))[0])
    >>> print(factor(jnp.array([[4.0, 2.0], [2.0, 5.0]])))
    [[2. 0.]
     [1. 2.]]
    """
    who = f"ffi_call({target_name})"
    if vmap_method is not None and vmap_method not in VMAP_METHODS:
        raise ValueError(
            f"{who}: vmap_method must be None or one of {', '.join(VMAP_METHODS)}, got "
            f"{vmap_method!r}"
        )
    if legacy_backend_config is not None and custom_call_api_version >= TYPED:
        raise ValueError(
            f"{who}: legacy_backend_config is for custom_call_api_version below {TYPED}; pass "
            "attributes by keyword"
        )
    types, out_tree = declared_types(result_shape_dtypes, who)
    single = not isinstance(result_shape_dtypes, (tuple, list))
    outs = [output_layouts] if single and output_layouts is not None else output_layouts
    out_layouts = _layouts(outs, types, who, "output_layouts")

    @hiding
    def calling(*args: Any, **attributes: Any) -> Any:
        leaves = check_arguments(calling, args, {}, who)
        ins = list(map(typeof, leaves))
        aliases = _aliases(input_output_aliases, ins, types, who)
        opaque = legacy_backend_config
        if opaque is None and custom_call_api_version < TYPED:
            opaque = ""
        function = ForeignFunction(
            target_name, attributes_of(attributes, who),
            _layouts(input_layouts, ins, who, "input_layouts"), out_layouts, aliases,
            custom_call_api_version, opaque,
        )  # fmt: skip
        foreign = Foreign(function, tuple(types), vmap_method, has_side_effect, user_location())
        return out_tree.unflatten(call_foreign(foreign, leaves))

    calling.__name__ = who
    return calling


def _layouts(layouts: Any, types: Sequence[ArrayType], who: str, what: str) -> Layouts:
    if layouts is None:
        return tuple([tuple(range(t.ndim)) for t in types])
    if len(layouts) != len(types):
        raise ValueError(
            f"{who}: {what} must have an entry for each of {len(types)} arrays, got {len(layouts)}"
        )
    return tuple([_layout(order, t, who, what) for order, t in zip(layouts, types, strict=True)])


def _layout(order: Any, type: ArrayType, who: str, what: str) -> tuple[int, ...]:
    if order is None:
        return tuple(range(type.ndim))
    found = tuple(map(index, getattr(order, "major_to_minor", order)))
    if sorted(found) != list(range(type.ndim)):
        raise ValueError(
            f"{who}: {what} name each dimension once, the outermost first; {found} does not fit "
            f"{type}"
        )
    return found


def _aliases(
    aliases: Mapping[int, int] | None, ins: Sequence[ArrayType], outs: Sequence[ArrayType], who: str
) -> tuple[tuple[int, int], ...]:
    pairs = sorted((index(i), index(o)) for i, o in (aliases or {}).items())
    for i, o in pairs:
        fits = 0 <= i < len(ins) and 0 <= o < len(outs)
        if not fits or (ins[i].shape, ins[i].dtype) != (outs[o].shape, outs[o].dtype):
            raise ValueError(
                f"{who}: input_output_aliases says that result {o} takes over the memory of "
                f"argument {i}, and of {len(ins)} arguments and {len(outs)} results these are no "
                "two of one shape and dtype"
            )
    return tuple(pairs)
