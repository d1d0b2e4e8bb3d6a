"""The dtypes by name, which also make arrays: ``float32``, ``int8``, ``bool_`` and the others."""

from __future__ import annotations

from typing import Any

import numpy as np

from phalanx.base.boundary import hiding
from phalanx.core.types import Array
from phalanx.numpy.creation import array


class ScalarType(type):
    """A dtype by name, such as ``phalanx.numpy.float32``, that also makes scalars.

    It stands wherever a dtype is expected (``x.astype(float32)``, ``x.dtype == float32``), and
    ``float32(3)`` is an array of shape () and that dtype. As a class, of which NumPy's scalars of
    that dtype are instances, it stands in annotations, too: ``float32 | None``. A class derived
    from it is the same dtype by another name, with what belongs to it.

    Attributes:
        dtype: the dtype, as NumPy has it.

    >>> import phalanx.numpy as jnp
    >>> jnp.ones(2, jnp.float16).dtype == jnp.float16, jnp.int8(3)
    (True, Array(3, dtype=int8))
    >>> class Color(jnp.uint8):
    ...     RED = jnp.uint8(2)
    >>> Color == jnp.uint8, Color.RED
    (True, Array(2, dtype=uint8))
    """

    dtype: np.dtype

    @hiding
    def __call__(cls, x: Any = 0) -> Array:  # type: ignore[override]
        """An array of this dtype.

        Args:
            x: what becomes one: a number, an array, or nested lists.

        Returns:
            An array of the shape of ``x``.
        """
        return array(x, cls.dtype)

    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, cls.dtype.type)

    def __eq__(cls, other: object) -> bool:
        if isinstance(other, (np.dtype, type, str)):  # what may mean a dtype
            try:
                return cls.dtype == np.dtype(other)  # type: ignore[arg-type]
            except TypeError:
                return NotImplemented
        return NotImplemented

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)  # tables of others have NumPy's classes as keys

    def __repr__(cls) -> str:
        return f"{cls.__module__}.{cls.__name__}"


_SCALAR_TYPE = """The dtype {name}: it stands wherever a dtype is expected, and makes arrays of it.

>>> import phalanx.numpy as jnp
>>> print(jnp.ones(2, jnp.{name}).dtype, jnp.{name}(1).dtype)
{name} {name}
"""
_WIDE_TYPE = """The dtype {name}: it stands wherever a dtype is expected, and makes arrays of it.

Arrays have it under the option ``enable_x64`` alone. Without that, those that are asked for in it
have numbers of half the bits, and a warning says so.

>>> import phalanx, phalanx.numpy as jnp
>>> with phalanx.enable_x64():
...     print(jnp.ones(2, jnp.{name}).dtype, jnp.{name}(1).dtype)
{name} {name}
"""


def _scalar_type(name: str) -> ScalarType:
    dtype = np.dtype(name)
    wide = dtype.itemsize > (8 if dtype.kind == "c" else 4)
    doc = (_WIDE_TYPE if wide else _SCALAR_TYPE).format(name=dtype.name)
    namespace = {"dtype": dtype, "__doc__": doc, "__module__": "phalanx.numpy"}
    return ScalarType(dtype.name, (), namespace)


bool_ = _scalar_type("bool")
int2, int4, int8, int16, int32, int64 = (_scalar_type(f"int{n}") for n in (2, 4, 8, 16, 32, 64))
uint2, uint4, uint8, uint16, uint32, uint64 = (
    _scalar_type(f"uint{n}") for n in (2, 4, 8, 16, 32, 64)
)
float4_e2m1fn = _scalar_type("float4_e2m1fn")
float8_e3m4 = _scalar_type("float8_e3m4")
float8_e4m3 = _scalar_type("float8_e4m3")
float8_e4m3b11fnuz = _scalar_type("float8_e4m3b11fnuz")
float8_e4m3fn = _scalar_type("float8_e4m3fn")
float8_e4m3fnuz = _scalar_type("float8_e4m3fnuz")
float8_e5m2 = _scalar_type("float8_e5m2")
float8_e5m2fnuz = _scalar_type("float8_e5m2fnuz")
float8_e8m0fnu = _scalar_type("float8_e8m0fnu")
bfloat16 = _scalar_type("bfloat16")
float16, float32, float64 = map(_scalar_type, ("float16", "float32", "float64"))
complex64, complex128 = map(_scalar_type, ("complex64", "complex128"))
int_, uint, float_, complex_ = int64, uint64, float64, complex128
single, double, csingle, cdouble = float32, float64, complex64, complex128
