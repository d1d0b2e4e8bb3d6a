"""Options for a block of code, in the running thread or task."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from phalanx.base.config import config
from phalanx.core.trace import entering
from phalanx.transforms.compile_time_eval import CompileTimeEvalTrace


def disable_jit(disable: bool = True) -> AbstractContextManager[None]:
    """Run jitted and mapped functions eagerly, so that ``print`` and a debugger see values.

    Args:
        disable: whether compilation is off inside the block.

    Returns:
        A context manager and decorator: within it the option has this value.

    >>> import phalanx
    >>> with phalanx.disable_jit():
    ...     print(phalanx.jit(lambda x: x + 1)(1))
    2
    """
    return config.override(disable_jit=disable)


def debug_nans(new_val: bool = True) -> AbstractContextManager[None]:
    """Raise ``NonFiniteError`` as soon as an operation produces a NaN.

    Args:
        new_val: whether the option is on inside the block.

    Returns:
        A context manager and decorator: within it the option has this value.

    >>> import phalanx, phalanx.numpy as jnp
    >>> with phalanx.debug_nans():
    ...     jnp.log(-1.0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    phalanx.errors.NonFiniteError: log: NaN in a result ...
    """
    return config.override(debug_nans=new_val)


def debug_infs(new_val: bool = True) -> AbstractContextManager[None]:
    """Raise ``NonFiniteError`` as soon as an operation produces an infinity.

    Args:
        new_val: whether the option is on inside the block.

    Returns:
        A context manager and decorator: within it the option has this value.

    >>> import phalanx, phalanx.numpy as jnp
    >>> with phalanx.debug_infs():
    ...     jnp.exp(100.0)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    phalanx.errors.NonFiniteError: exp: an infinity in a result ...
    """
    return config.override(debug_infs=new_val)


def log_compiles(new_val: bool = True) -> AbstractContextManager[None]:
    """Log a warning for each program that is compiled: its name, and the types that it takes.

    The logger is Python's ``logging.getLogger("phalanx")``.

    Args:
        new_val: whether the option is on inside the block.

    Returns:
        A context manager and decorator: within it the option has this value.

    >>> import phalanx
    >>> with phalanx.log_compiles():
    ...     phalanx.jit(lambda x: x * 3)(2)
    Array(6, dtype=int32, weak_type=True)
    """
    return config.override(log_compiles=new_val)


def enable_x64(new_val: bool = True) -> AbstractContextManager[None]:
    """Keep 64-bit dtypes, which otherwise become the 32-bit ones.

    Args:
        new_val: whether the option is on inside the block.

    Returns:
        A context manager and decorator: within it the option has this value.

    >>> import phalanx, phalanx.numpy as jnp
    >>> with phalanx.enable_x64():
    ...     jnp.ones(2).dtype
    dtype('float64')
    """
    return config.override(enable_x64=new_val)


def default_matmul_precision(new_val: str | None) -> AbstractContextManager[None]:
    """Compute products of float32 that do not ask for a precision with this one.

    Args:
        new_val: "default", "high", "highest", or None for what the platform does.

    Returns:
        A context manager and decorator: within it the option has this value.

    >>> import phalanx, phalanx.numpy as jnp
    >>> with phalanx.default_matmul_precision("highest"):
    ...     jnp.ones((2, 2)) @ jnp.ones(2)
    Array([2., 2.], dtype=float32)
    """
    return config.override(default_matmul_precision=new_val)


def default_device(new_val: Any) -> AbstractContextManager[None]:
    """Make arrays on a device where nobody says otherwise, and run there what has none.

    Args:
        new_val: one of ``phalanx.devices()``, the name of a platform, or None for the first device.

    Returns:
        A context manager and decorator: within it the option has this value.

    >>> import phalanx, phalanx.numpy as jnp
    >>> last = phalanx.devices()[-1]
    >>> with phalanx.default_device(last):
    ...     x = jnp.zeros(3)
    >>> x.devices() == {last}
    True
    """
    return config.override(default_device=new_val)


def disable_x64() -> AbstractContextManager[None]:
    """Turn 64-bit dtypes into the 32-bit ones.

    Returns:
        A context manager and decorator: within it the option has this value.

    >>> import phalanx
    >>> with phalanx.experimental.disable_x64():
    ...     jnp.ones(2, float).dtype
    dtype('float32')
    """
    return enable_x64(False)


def ensure_compile_time_eval() -> AbstractContextManager[Any]:
    """Compute now what a block says, also inside of ``jit`` and other transformations.

    What it computes of known values are arrays with values, which Python may look at. What takes a
    value of a transformation belongs to that transformation, as it would outside of the block.

    Returns:
        A context manager, to be used in a ``with`` statement.

    >>> import phalanx, phalanx.numpy as jnp
    >>> @phalanx.jit
    ... def f(x):
    ...     with phalanx.ensure_compile_time_eval():
    ...         positive = jnp.sin(3.0) > 0
    ...     return x if positive else -x
    >>> print(f(1.0))
    1.0
    """
    return entering(CompileTimeEvalTrace())
