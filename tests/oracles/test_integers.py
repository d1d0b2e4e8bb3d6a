"""Functions of integers at the edges of every dtype, also of indices: the numbers are NumPy's."""

import numpy as np
import pytest

import phalanx
from tests.exemptions import exempt
from tests.laws.arguments import calls
from tests.laws.test_one_answer import on_arrays

DTYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
SIZES = {"k": 4, "m": 9, "n": 16}


def edges(dtype):
    """Numbers at the ends of ``dtype``, about zero, and about its number of bits."""
    least, most, bits = np.iinfo(dtype).min, np.iinfo(dtype).max, np.iinfo(dtype).bits
    below = [least + 1, -1, -2, -3] if least else []
    return np.array([least, most, most - 1, 0, 1, 2, 3, bits - 1, bits, bits + 1, *below], dtype)


def operands(call, dtype):
    """Operands at edges; what counts or points is small, and of that dtype too."""
    source = np.random.default_rng(0)
    drawn = call.operands(dtype, SIZES)
    for i, slot in enumerate(call.slots):
        if slot.dtype is None:
            drawn[i] = source.choice(edges(dtype), drawn[i].shape)
            drawn[i] = np.sort(drawn[i]) if slot.ordered else drawn[i]
        elif slot.dtype == np.int32:
            drawn[i] = drawn[i].astype(dtype)
    return drawn


def in_numpy(call, xs):
    """The leaves of what NumPy gives; None if it has no such function, or refuses integers."""
    args, kwargs = call.arguments(xs, SIZES)
    try:
        with np.errstate(all="ignore"):
            out = getattr(np, call.name)(*args, **kwargs)
    except (TypeError, ValueError, AttributeError):
        return None
    return [np.asarray(y) for y in phalanx.tree.leaves(out)]


CALLS = [c for c in calls() if c.room == "numpy" and c.slots and not exempt("integers-as-numpy", c)]
CALLS = list({c.function: c for c in CALLS}.values())  # by one of their names


def whole(outs):
    """Whether results are arrays of integers or truth values."""
    return outs is not None and all(y.dtype.kind in "iub" for y in outs)


@pytest.mark.filterwarnings("ignore")  # those of NumPy
@pytest.mark.parametrize("dtype", DTYPES)
def test_edges(dtype):
    with phalanx.enable_x64():
        given = [(c, operands(c, dtype)) for c in CALLS]
        given = [(c, xs, in_numpy(c, xs)) for c, xs in given]
        given = [x for x in given if whole(x[2]) and on_arrays(x[0])]
        assert len(given) > 100
        made = [c for c, _, _ in given]
        every = phalanx.jit(lambda of_all: [
            c(*xs, sizes=SIZES) for c, xs in zip(made, of_all, strict=True)
        ])  # fmt: skip
        found = every([xs for _, xs, _ in given])
    wrong = []
    for (call, xs, wanted), of_call in zip(given, found, strict=True):
        for x, y in zip(map(np.asarray, phalanx.tree.leaves(of_call)), wanted, strict=True):
            y = y.astype(x.dtype)  # NumPy may add up more bits
            if x.dtype.kind in "iub" and (x.shape != y.shape or (x != y).any()):
                wrong.append(f"{call} of {xs}: {x} instead of {y}")
    assert not wrong, "\n".join(wrong)
