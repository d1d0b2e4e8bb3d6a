"""Every public function on arrays without elements and without dimensions.

It gives what NumPy gives, if that takes the call, or it raises an exception of ours. Each law is
one test for a package, and names the calls that break it. What is computed is compared for one
dtype; in all others, and in all ways of giving arguments, the types are.
"""

import dis
import functools
import warnings
from dataclasses import replace

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import errors
from phalanx.base.errors import PhalanxError
from tests.exemptions import exempt
from tests.laws.arguments import ROOMS, calls
from tests.laws.calls import CASTS, SIZES, Operand, replaced

CALLS = [  # of what gives arrays
    c for c in calls() if c.args is not None and c.slots and c.name != "eval_shape"
]
DTYPES = ["bool", "int8", "uint8", "int32", "uint32", "float16", "bfloat16", "float32", "complex64"]
OURS = (TypeError, ValueError, IndexError, OverflowError, NotImplementedError, PhalanxError)
UNKNOWN = (errors.ConcretizationTypeError, errors.NonConcreteBooleanIndexError)
LETTERS = tuple(f"{letter} = 0" for letter in SIZES)
IN_PLACE = ("fill_diagonal", "place", "put", "put_along_axis")
ACCIDENT = ": called with ("  # so says the boundary of what was not raised in words
# ---- the calls ----------------------------------------------------------------------------------


def variants(call):
    """``call`` at all sizes of the law: (name, call, sizes)."""
    letters = letters_of(call)
    yield "empty", call, dict.fromkeys(SIZES, 0)
    for letter in letters if len(letters) > 1 else ():
        yield f"{letter} = 0", call, {**SIZES, letter: 0}
    yield "scalars", without_dimensions(call, len(call.slots)), SIZES
    if len(call.slots) > 1:
        yield "first is a scalar", without_dimensions(call, 1), SIZES


def letters_of(call):
    """The letters of the shapes in a call."""
    shapes = "".join(slot.shape for slot in call.slots)
    return [letter for letter in SIZES if letter in shapes]


def without_dimensions(call, count):
    """``call`` with its first ``count`` operands of any dtype in place of scalars."""
    left = iter(range(count))

    def change(x):
        scalar = isinstance(x, Operand) and x.dtype is None and next(left, None) is not None
        return replace(x, shape="") if scalar else x

    return replace(call, args=tuple(replaced(list(call.args), change)))


# ---- what becomes of them -----------------------------------------------------------------------


def attempt(run, *operands):
    """The leaves of what ``run`` gives, or the exception that it raises, which must be ours."""
    try:
        return phalanx.tree.leaves(run(*operands))
    except OURS as e:
        assert is_raised(e) and str(e) and ACCIDENT not in str(e), f"an accident inside: {e!r}"
        return e


def is_raised(e):
    """Whether a ``raise`` raised it, as opposed to a mistake."""
    tb = e.__traceback__
    while tb.tb_next is not None:
        tb = tb.tb_next
    return dis.opname[tb.tb_frame.f_code.co_code[tb.tb_lasti]] in ("RAISE_VARARGS", "RERAISE")


def in_numpy(call, sizes, dtype=None):
    """The leaves of what NumPy gives for the same call, or None where it refuses the call, or has
    no such function."""
    if not call.room.startswith("numpy") or exempt("sizes-as-numpy", call):
        return None
    args, kwargs = call.arguments(call.operands(dtype, sizes), sizes)
    kwargs.pop("inplace", None)
    try:
        function = functools.reduce(getattr, [*call.room.split(".")[1:], call.name], np)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out = function(*args, **kwargs)
    except Exception:
        return None
    return phalanx.tree.leaves(args[0] if call.name in IN_PLACE else out)


def difference(call, ours, numpys, of_values=True):
    """What differs between leaves: how many there are, a shape, the kind of a dtype, a value."""
    if isinstance(ours, Exception):
        return None if exempt("sizes-taken", call) else f"refused: {ours}"
    if len(ours) != len(numpys):
        return f"{len(ours)} results, not {len(numpys)}"
    pairs = [(x, np.asarray(y)) for x, y in zip(ours, numpys, strict=True)]
    for x, y in pairs:
        if np.shape(x) != y.shape:
            return f"shape {np.shape(x)}, not {y.shape}"
        if kind(x) != kind(y) and not exempt("kinds-of-dtypes", call):
            return f"{kind(x)}, not {kind(y)}"
        if of_values and not close(x, y):
            return f"{np.asarray(x).tolist()}, not {y.tolist()}"
    return None


def kind(x):
    dtype = np.asarray(x).dtype if np.isscalar(x) else x.dtype
    return "f" if dtype == jnp.bfloat16.dtype else dtype.kind


def close(x, y):
    if y.dtype.kind not in "biufc":
        return x == y
    x, y = np.asarray(x).astype(complex), y.astype(complex)
    return np.allclose(x, y, 1e-5, 1e-6, equal_nan=True)


# ---- the laws -----------------------------------------------------------------------------------


def report(said):
    """Fail with all lines that are no None."""
    lines = [f"{call}, {name}: {line}" for call, name, line in said if line]
    assert not lines, "\n".join(lines)


def cases(room, *names):
    """The calls of a package at sizes with these names: (call, name, the call there, sizes)."""
    return [(c, *v) for c in CALLS if c.room == room for v in variants(c) if v[0] in names]


@pytest.mark.parametrize("room", ROOMS)
def test_eager_calls_give_what_numpy_gives(room):
    def law(at, sizes):
        ours = attempt(functools.partial(at, sizes=sizes), *at.operands(None, sizes))
        numpys = in_numpy(at, sizes)
        return None if numpys is None else difference(at, ours, numpys)

    report([(c, name, law(at, z)) for c, name, at, z in cases(room, "empty", "scalars")])


@pytest.mark.parametrize("room", ROOMS)
def test_compiled_calls_give_what_numpy_gives(room):
    """All in one program; it is compiled and run call by call only to see which is wrong."""
    traced = [c for c in cases(room, "empty", *LETTERS) if isinstance(types(*c[2:]), list)]
    try:
        outs = together(traced)
    except Exception:
        outs = [together([c])[0] for c in traced]
    pairs = [(c, out, in_numpy(*c[2:])) for c, out in zip(traced, outs, strict=True)]
    report([(*c[:2], difference(c[2], out, y)) for c, out, y in pairs if y is not None])


def together(cases):
    """What calls give in one compiled program."""
    run = phalanx.jit(
        lambda operands: [
            phalanx.tree.leaves(at(*xs, sizes=sizes))
            for (_, _, at, sizes), xs in zip(cases, operands, strict=True)
        ]
    )
    return run([at.operands(None, sizes) for _, _, at, sizes in cases])


@CASTS
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("room", ROOMS)
def test_types_are_those_of_numpy_in_every_dtype(room, dtype):
    def law(at, sizes):
        ours, numpys = types(at, sizes, jnp.dtype(dtype)), in_numpy(at, sizes, jnp.dtype(dtype))
        if numpys is None or isinstance(ours, UNKNOWN):
            return None
        return difference(at, ours, numpys, of_values=False)

    chosen = cases(room, "empty", "scalars", "first is a scalar")
    report([(c, name, law(at, sizes)) for c, name, at, sizes in chosen])


@pytest.mark.parametrize("room", ROOMS)
def test_arguments_by_keyword_and_numbers_of_python(room):
    def by_keyword(at, sizes):
        given, named = types(at, sizes), types(at.by_keyword(), sizes)
        same = type(given) is type(named) and (isinstance(given, Exception) or given == named)
        return None if same else f"{given} by position, {named} by keyword"

    def of_python(at, sizes):
        numbers = [x.item() if x.ndim == 0 else x for x in at.operands(None, sizes)]
        given = attempt(phalanx.eval_shape, lambda: at(*numbers, sizes=sizes))
        arrays = types(at, sizes)
        if isinstance(arrays, UNKNOWN):
            return None
        if isinstance(given, Exception) or isinstance(arrays, Exception):
            same = type(given) is type(arrays) or exempt("numbers-as-arrays", at)
            return None if same else f"{given} of numbers, {arrays} of arrays"
        shapes = [[x.shape for x in xs] for xs in (given, arrays)]
        return None if shapes[0] == shapes[1] else f"shapes {shapes[0]}, of arrays {shapes[1]}"

    empty, scalars = cases(room, "empty"), cases(room, "scalars")
    report([(c, "by keyword", by_keyword(at, sizes)) for c, _, at, sizes in empty])
    report([(c, "numbers", of_python(at, sizes)) for c, _, at, sizes in scalars])


@pytest.mark.parametrize("room", ROOMS)
def test_no_lanes(room):
    def law(at, sizes):
        lane = types(at, sizes)
        if isinstance(lane, Exception) or at.communicates:
            return None
        operands = [np.zeros((0, *x.shape), x.dtype) for x in at.operands(None, sizes)]
        mapped = phalanx.vmap(functools.partial(at, sizes=sizes))
        given = attempt(phalanx.eval_shape, mapped, *operands)
        if isinstance(given, UNKNOWN):
            return None
        wanted = [((0, *x.shape), x.dtype) for x in lane]
        same = isinstance(given, list) and [(x.shape, x.dtype) for x in given] == wanted
        return None if same else f"{given}, not {wanted}"

    report([(c, "no lanes", law(c, SIZES)) for c in CALLS if c.room == room])


def types(call, sizes, dtype=None):
    """The types of what a call gives, without computing it, or the exception that it raises."""
    run = functools.partial(call, sizes=sizes)
    return attempt(phalanx.eval_shape, run, *call.operands(dtype, sizes))
