"""What need not obey a law of every function, or of every primitive, and why.

``exemptions.toml`` says it: by function, then law, the reason in words. A law asks whether it is
``exempt`` what it is about to try.
"""

import functools
import tomllib
from pathlib import Path

LAWS = {
    # of numbers
    "as-numpy": "gives what NumPy gives for floating-point numbers",
    "integers-as-numpy": "gives what NumPy gives for integers at the edges of every dtype",
    "special-numbers": "gives the same eagerly and compiled where numbers end",
    "nan-in-nan-out": "gives NaN where that depends on an operand that is NaN",
    "limits-as-scipy": "gives what SciPy gives at infinities, and where that has no value",
    # of derivatives
    "slopes-as-differences": "has the derivative that differences say",
    "slopes-of-all-sizes": "is elementwise, and its derivatives have digits at all sizes",
    "complex-slopes": "is elementwise, and its derivatives have digits in all directions",
    "slopes-of-distributions": "has the derivative that differences of SciPy's say",
    # of sizes
    "sizes-as-numpy": "gives what NumPy gives without elements and without dimensions",
    "sizes-taken": "takes arrays without elements and without dimensions that NumPy takes",
    "kinds-of-dtypes": "gives dtypes of the kind that NumPy gives",
    "numbers-beside-arrays": "has the shape of its arrays where one operand is a number",
    "shapes-as-jax": "takes the shapes that jax takes, and no others",
    "numbers-as-arrays": "takes a number of Python as it takes an array without dimensions",
    "forms-of-sizes": "takes a dimension, a length or a number in every form of an integer",
    "fractions-refused": "refuses lengths that have a fraction",
    "sizes-untraced": "refuses sizes that only the run of a compiled function knows",
    # of arrays and their types
    "traced-arrays": "makes arrays of arrays, and can be traced",
    "one-program": "runs one program for a call",
    "masked-refused": "refuses masked arrays of NumPy",
    "weak-types": "gives what is weak for operands that all are",
    "64-bits-told": "tells who asks for 64 bits that there are 32",
    "strict-promotion": "has an example whose operands agree in dtype and rank",
    "strict-dtypes-as-jax": "refuses the dtypes that jax refuses where promotion is strict",
    "strict-ranks-as-jax": "refuses the ranks that jax refuses where promotion is strict",
    "strict-ranks-as-older-jax": "the same, of older releases of jax",
    # of how it is called and described
    "signatures": "takes the parameters that jax's function takes, as that does",
    "signatures-of-older-jax": "the same, of older releases of jax",
    "documented-examples": "shows an example in its docstring",
    # of programs and primitives
    "lowered-for-cuda": "is lowered for GPUs of NVIDIA",
    "lowered-for-rocm": "is lowered for GPUs of AMD",
    "lowered-for-tpu": "is lowered for TPUs",
    "declared-examples": "is declared with examples",
    "counted-operations": "takes as many operations as XLA counts",
    "narrow-integers": "gives for integers of few bits what it gives for int32, cut off",
    "narrow-floats": "gives for floats of a byte or less what it gives for float32, rounded",
}


def exempt(law, name):
    """Why ``name`` need not obey ``law``; None where it must. Calls go by their names."""
    return exemptions(law).get(str(name))


@functools.cache
def exemptions(law):
    """What need not obey ``law``: names, with the reasons."""
    if law not in LAWS:
        raise KeyError(f"{law!r} is none of the laws in tests/exemptions.py")
    return {name: reason for name, other, reason in ENTRIES if other == law}


def entries(table, path=()):
    """The name, the law and the reason of each line."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from entries(value, (*path, key))
        else:
            yield ".".join(path), key, value


ENTRIES = [*entries(tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")))]
