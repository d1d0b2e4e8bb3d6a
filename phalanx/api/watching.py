"""Blocks that watch a program: what it traces, transfers and leaks, and which rules it may use."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from phalanx.base.boundary import bound
from phalanx.base.config import config

# ---- transfers ------------------------------------------------------------------------------


def transfer_guard(new_val: str) -> AbstractContextManager[None]:
    """What becomes of transfers between host and devices, and between devices.

    ``device_put`` and ``device_get`` are *explicit*, all others *implicit*, such as those of
    NumPy's arrays that a compiled function is called with. Where the devices are CPUs, nothing is
    transferred to the host.

    Args:
        new_val: "allow" (the default) all; "log" or "disallow" implicit ones; "log_explicit" or
            "disallow_explicit" all of them.

    Returns:
        A context manager and decorator: within it the option has this value.

    >>> import phalanx, numpy as np
    >>> with phalanx.transfer_guard("disallow"):
    ...     x = phalanx.device_put(np.ones(3))
    ...     phalanx.jit(lambda x: x + 1)(np.ones(3))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    phalanx.errors.DisallowedTransfer: Disallowed host-to-device transfer of f32[3] ...
    """
    return config.override(transfer_guard=new_val)


def transfer_guard_host_to_device(new_val: str) -> AbstractContextManager[None]:
    """What becomes of transfers from the host to devices; see ``transfer_guard``.

    Args:
        new_val: "allow" (the default) all; "log" or "disallow" implicit ones; "log_explicit" or
            "disallow_explicit" all of them.

    Returns:
        A context manager and decorator: within it the option has this value.

    >>> import phalanx
    >>> with phalanx.transfer_guard_host_to_device("log"):
    ...     x = phalanx.device_put(1.0)
    """
    return config.override(transfer_guard_host_to_device=new_val)


def transfer_guard_device_to_host(new_val: str) -> AbstractContextManager[None]:
    """What becomes of transfers from devices to the host; see ``transfer_guard``.

    Args:
        new_val: "allow" (the default) all; "log" or "disallow" implicit ones; "log_explicit" or
            "disallow_explicit" all of them.

    Returns:
        A context manager and decorator: within it the option has this value.

    >>> import phalanx
    >>> with phalanx.transfer_guard_device_to_host("allow"):
    ...     float(jnp.float32(1.5))
    1.5
    """
    return config.override(transfer_guard_device_to_host=new_val)


def transfer_guard_device_to_device(new_val: str) -> AbstractContextManager[None]:
    """What becomes of transfers between devices; see ``transfer_guard``.

    Args:
        new_val: "allow" (the default) all; "log" or "disallow" implicit ones; "log_explicit" or
            "disallow_explicit" all of them.

    Returns:
        A context manager and decorator: within it the option has this value.

    >>> import phalanx
    >>> with phalanx.transfer_guard_device_to_device("allow"):
    ...     x = phalanx.device_put(jnp.ones(2), phalanx.devices()[-1])
    """
    return config.override(transfer_guard_device_to_device=new_val)


# ---- promotion ------------------------------------------------------------------------------


def numpy_rank_promotion(new_val: str) -> AbstractContextManager[None]:
    """Whether arrays of different ranks broadcast; numbers always do.

    Args:
        new_val: "allow", "warn" or "raise".

    Returns:
        A context manager and decorator: within it the option has this value.

    >>> import phalanx, phalanx.numpy as jnp
    >>> with phalanx.numpy_rank_promotion("raise"):
    ...     jnp.ones((2, 3)) + jnp.ones(3)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    phalanx.errors.ShapeError: add: shapes (3,) and (2, 3), which have different ranks, ...
    """
    return config.override(numpy_rank_promotion=new_val)


def numpy_dtype_promotion(new_val: str) -> AbstractContextManager[None]:
    """Whether arrays of different dtypes combine.

    Args:
        new_val: "standard", or "strict": only Python's numbers adapt to arrays of their kind.

    Returns:
        A context manager and decorator: within it the option has this value.

    >>> import phalanx, phalanx.numpy as jnp
    >>> with phalanx.numpy_dtype_promotion("strict"):
    ...     jnp.ones(2) + jnp.arange(2)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    phalanx.errors.TypePromotionError: dtypes float32, int32 are not promoted ...
    """
    return config.override(numpy_dtype_promotion=new_val)


# ---- tracing --------------------------------------------------------------------------------


def explain_cache_misses(new_val: bool = True) -> AbstractContextManager[None]:
    """Log a warning when a function is traced: its name, its line, and what is new in the call.

    That is told by comparing it with the calls for which the function was traced before: which
    argument has another type or structure, or which static one another value; or that the function
    itself is a new object, which was made of code that had been traced.

    Args:
        new_val: the value of the option inside the block.

    Returns:
        A context manager and decorator: within it the option has this value.

    >>> import phalanx
    >>> with phalanx.explain_cache_misses(False):
    ...     y = phalanx.jit(lambda x: x + 1)(1.0)
    """
    return config.override(explain_cache_misses=new_val)


def no_tracing(new_val: bool = True) -> AbstractContextManager[None]:
    """Refuse to trace functions that have not been traced for the types of their arguments.

    Args:
        new_val: the value of the option inside the block.

    Returns:
        A context manager and decorator: within it the option has this value.

    >>> import phalanx
    >>> f = phalanx.jit(lambda x: x + 1)
    >>> print(f(1.0))
    2.0
    >>> with phalanx.no_tracing():
    ...     print(f(2.0))
    ...     f(3)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    phalanx...TracingRefused: jit(<lambda>): it has not been traced for arguments (i32[]), at ...
    """
    return config.override(no_tracing=new_val)


def enable_checks(new_val: bool = True) -> AbstractContextManager[None]:
    """Check every program against its types when it has been traced.

    Args:
        new_val: the value of the option inside the block.

    Returns:
        A context manager and decorator: within it the option has this value.

    >>> import phalanx
    >>> with phalanx.enable_checks():
    ...     float(phalanx.jit(lambda x: x + 1)(1.0))
    2.0
    """
    return config.override(enable_checks=new_val)


def enable_custom_prng(new_val: bool = True) -> AbstractContextManager[None]:
    """Let ``random.PRNGKey`` give keys of the kind of ``random.key``.

    Args:
        new_val: the value of the option inside the block.

    Returns:
        A context manager and decorator: within it the option has this value.

    >>> import phalanx
    >>> with phalanx.enable_custom_prng():
    ...     phalanx.random.PRNGKey(0).dtype
    key<fry>
    """
    return config.override(enable_custom_prng=new_val)


def default_prng_impl(new_val: str = "threefry2x32") -> AbstractContextManager[None]:
    """Make keys for the generator of this name where no other is asked for.

    Args:
        new_val: the name of the generator, such as ``threefry2x32``.

    Returns:
        A context manager and decorator: within it the option has this value.

    >>> import phalanx
    >>> with phalanx.default_prng_impl("rbg"):
    ...     phalanx.random.key(0).dtype
    key<rbg>
    """
    return config.override(default_prng_impl=new_val)


def threefry_partitionable(new_val: bool = True) -> AbstractContextManager[None]:
    """Draw each number by its own position; where ``new_val`` is false, as was done formerly.

    Formerly a number depended on how many were drawn with it: programs get the numbers that they
    were written with.

    Args:
        new_val: the value of the option inside the block.

    Returns:
        A context manager and decorator: within it the option has this value.

    >>> import phalanx
    >>> from phalanx import random
    >>> with phalanx.threefry_partitionable(False):
    ...     random.bits(random.key(0), (3,))
    Array([4146024105, 1351547692, 2718843009], dtype=uint32)
    """
    return config.override(threefry_partitionable=new_val)


def legacy_prng_key(new_val: str = "allow") -> AbstractContextManager[None]:
    """Take keys in their old form, "allow", or "warn" of them, or refuse them, "error".

    Args:
        new_val: "allow", "warn" or "error".

    Returns:
        A context manager and decorator: within it the option has this value.

    >>> import phalanx
    >>> with phalanx.legacy_prng_key("allow"):
    ...     phalanx.random.uniform(phalanx.random.PRNGKey(0)).shape
    ()
    """
    return config.override(legacy_prng_key=new_val)


def auto_pcast(new_val: bool = True) -> AbstractContextManager[None]:
    """Let values next to others in ``shard_map`` vary as these; if not, ``lax.pcast`` says it.

    Where it has to, a program tells each sum over devices in its derivative. So what has no
    derivative needs no ``pcast``: integers, and what is computed from constants alone.

    Args:
        new_val: the value of the option inside the block.

    Returns:
        A context manager and decorator: within it the option has this value.

    >>> import phalanx
    >>> from phalanx import P
    >>> mesh = phalanx.make_mesh((1,), "i")
    >>> specs = {"in_specs": (P("i"), P()), "out_specs": P("i")}
    >>> add = phalanx.shard_map(lambda x, y: x + y, mesh=mesh, **specs)
    >>> with phalanx.auto_pcast(False):  # doctest: +ELLIPSIS
    ...     add(phalanx.numpy.ones(2), phalanx.numpy.ones(2))
    Traceback (most recent call last):
    phalanx.errors.ShardingTypeError: add: operands vary along different axes, f32[2]{i}, f32[2]...
    """
    return config.override(auto_pcast=new_val)


def remove_size_one_mesh_axis_from_type(new_val: bool = True) -> AbstractContextManager[None]:
    """Leave axes of length 1 of a mesh out of the types of values inside ``shard_map``.

    Args:
        new_val: the value of the option inside the block.

    Returns:
        A context manager and decorator: within it the option has this value.

    >>> import phalanx
    >>> mesh, rows = phalanx.make_mesh((1,), "i"), phalanx.P("i")
    >>> with phalanx.remove_size_one_mesh_axis_from_type():
    ...     f = phalanx.shard_map(lambda x: x + 1, mesh=mesh, in_specs=rows, out_specs=phalanx.P())
    ...     f(phalanx.numpy.zeros(2))
    Array([1., 1.], dtype=float32)
    """
    return config.override(remove_size_one_mesh_axis_from_type=new_val)


def checking_leaks() -> AbstractContextManager[None]:
    """A block in which each transformation looks, at its end, for traced values that outlive it.

    That takes a while: all objects that there are are looked through. The option
    ``check_tracer_leaks`` says the same for the whole process.

    Returns:
        A context manager, to be used in a ``with`` statement.

    Raises:
        EscapedTracer: there is one; the message says where it was made.

    >>> import phalanx
    >>> kept = []
    >>> with phalanx.checking_leaks():  # doctest: +ELLIPSIS
    ...     _ = phalanx.jit(lambda x: kept.append(2 * x))(1.0)
    Traceback (most recent call last):
    phalanx.errors.EscapedTracer: Leaked value ...
    """
    return check_tracer_leaks(True)


def check_tracer_leaks(new_val: bool = True) -> AbstractContextManager[None]:
    """``checking_leaks``, or a block without such looks where ``new_val`` is false.

    Args:
        new_val: the value of the option inside the block.

    Returns:
        A context manager and decorator: within it the option has this value.

    >>> import phalanx
    >>> with phalanx.check_tracer_leaks(False):
    ...     float(phalanx.jit(lambda x: x + 1)(1.0))
    2.0
    """
    return config.override(check_tracer_leaks=new_val)


# ---- options that change nothing here -------------------------------------------------------


def _accepted(name: str, default: Any) -> Callable[..., AbstractContextManager[None]]:
    def block(new_val: Any = default) -> AbstractContextManager[None]:
        return config.override(**{name: new_val})

    block.__name__ = block.__qualname__ = name
    block.__doc__ = f"""The option ``{name}`` of other libraries; what it cannot mean is refused.

    Args:
        new_val: the value of the option inside the block.

    Returns:
        A context manager, and a decorator: inside its block, or function, the option has this
        value.

    Raises:
        ConfigError: the option has another value here.

    >>> import phalanx
    >>> with phalanx.{name}({getattr(config, name)!r}):
    ...     x = phalanx.numpy.ones(2)
    """
    return block


allow_f16_reductions = _accepted("allow_f16_reductions", True)
array_garbage_collection_guard = _accepted("array_garbage_collection_guard", None)
debug_key_reuse = _accepted("debug_key_reuse", True)
jax2tf_associative_scan_reductions = _accepted("jax2tf_associative_scan_reductions", True)
no_execution = _accepted("no_execution", True)
softmax_custom_jvp = _accepted("softmax_custom_jvp", True)
thread_guard = _accepted("thread_guard", True)

bound(sys.modules[__name__])
