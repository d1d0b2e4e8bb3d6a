"""The names of precisions of float32 products, and which of three words each stands for."""

from __future__ import annotations

from phalanx.base.choices import Choice


class _Named(Choice):
    """Members are told by their names."""

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"


class Precision(_Named):
    """How exactly products of float32 are computed where the hardware has faster, coarser ways.

    ``DEFAULT`` is the fastest, ``HIGHEST`` is full float32. On CPUs all are full float32. The
    words that stand for a precision elsewhere give it here, too, and None gives ``DEFAULT``.

    >>> import phalanx.numpy as jnp
    >>> from phalanx import lax
    >>> print(jnp.dot(jnp.ones(3), jnp.ones(3), precision=lax.Precision.HIGHEST))
    3.0
    >>> lax.Precision("tensorfloat32")
    Precision.HIGH
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    @classmethod
    def _missing_(cls, value: object) -> Precision | None:
        if value is None:
            return cls.DEFAULT
        word = _WORDS.get(value.lower()) if isinstance(value, str) else None
        return None if word is None else cls[word.upper()]


class DotAlgorithmPreset(_Named):
    """Ways of multiplying: the types of the operands' parts, of the sums, and how many products.

    Each stands for the coarsest ``Precision`` that is as exact for float32: one product of parts
    in bfloat16 or another narrow type for ``DEFAULT``, three for ``HIGH``, as many as float32 needs
    for ``HIGHEST``.

    >>> from phalanx import lax
    >>> float(lax.dot(jnp.ones(2), jnp.ones(2), precision=lax.DotAlgorithmPreset.F32_F32_F32))
    2.0
    """

    DEFAULT = 1
    ANY_F8_ANY_F8_F32 = 2
    ANY_F8_ANY_F8_F32_FAST_ACCUM = 3
    ANY_F8_ANY_F8_ANY = 4
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = 5
    F16_F16_F16 = 6
    F16_F16_F32 = 7
    BF16_BF16_BF16 = 8
    BF16_BF16_F32 = 9
    BF16_BF16_F32_X3 = 10
    BF16_BF16_F32_X6 = 11
    BF16_BF16_F32_X9 = 12
    TF32_TF32_F32 = 13
    TF32_TF32_F32_X3 = 14
    F32_F32_F32 = 15
    F64_F64_F64 = 16


_COARSE = {"DEFAULT", "F16_F16_F16", "F16_F16_F32", "BF16_BF16_BF16", "BF16_BF16_F32"}
_MIDDLE = {"BF16_BF16_F32_X3", "TF32_TF32_F32"}


def _of_preset(name: str) -> str:
    coarse = name in _COARSE or name.startswith("ANY_F8")
    return "default" if coarse else "high" if name in _MIDDLE else "highest"


_WORDS = {
    "default": "default",
    "fastest": "default",
    "bfloat16": "default",
    "high": "high",
    "bfloat16_3x": "high",
    "tensorfloat32": "high",
    "highest": "highest",
    "float32": "highest",
}

PRECISIONS = {**{p.name.lower(): _of_preset(p.name) for p in DotAlgorithmPreset}, **_WORDS}
