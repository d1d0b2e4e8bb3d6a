"""What is weak, and what is refused, is so as in the peer, for every elementwise function of lax.

Operands are numbers of Python and NumPy, and arrays that are weak and that are not. What differs on
purpose is listed here, and in docs/differences.md.
"""

import inspect
import itertools

import jax
import numpy as np
import pytest

import phalanx
from tests.exemptions import exempt
from tests.laws.arguments import calls

KINDS = {
    "bool": lambda m: True,
    "int": lambda m: 3,
    "float": lambda m: 2.0,
    "complex": lambda m: 1j,
    "np.int32": lambda m: np.int32(3),
    "np.float16": lambda m: np.float16(2),
    "np.float32": lambda m: np.float32(2),
    "int*": lambda m: m.numpy.asarray(3),
    "float*": lambda m: m.numpy.asarray(2.0),
    "float*[3]": lambda m: m.lax.full((3,), 2.0),
    "bool[3]": lambda m: m.numpy.ones(3, bool),
    "uint8[3]": lambda m: m.numpy.ones(3, "uint8"),
    "int32[3]": lambda m: np.ones(3, np.int32),
    "float32[3]": lambda m: m.numpy.ones(3, "float32"),
}

ONE = """abs acos acosh asin asinh atan atanh bessel_i0e bessel_i1e bitwise_not cbrt ceil clz conj
cos cosh digamma erf erf_inv erfc exp exp2 expm1 floor imag is_finite lgamma log log1p logistic neg
population_count real reciprocal round rsqrt sign sin sinh sqrt square stop_gradient tan tanh"""
TWO = """add atan2 bitwise_and bitwise_or bitwise_xor complex div eq ge gt igamma igammac
igamma_grad_a le lt max min mul ne nextafter polygamma pow random_gamma_grad rem shift_left
shift_right_arithmetic shift_right_logical sub zeta"""


def named(name):
    return lambda lax, *xs: getattr(lax, name)(*xs)


FUNCTIONS = {
    **{n: (1, named(n)) for n in ONE.split()},
    **{n: (2, named(n)) for n in TWO.split()},
    "integer_pow": (1, lambda lax, x: lax.integer_pow(x, 2)),
    "reduce_precision": (1, lambda lax, x: lax.reduce_precision(x, 5, 3)),
    "betainc": (2, lambda lax, x, y: lax.betainc(x, y, x)),
    "clamp": (2, lambda lax, x, y: lax.clamp(x, y, x)),
    "select": (2, lambda lax, x, y: lax.select(True, x, y)),
    "select_n": (2, lambda lax, x, y: lax.select_n(np.int32(1), x, y, x)),
}
# that of random_gamma_grad refuses numbers, and takes two dtypes
PEERS = {"random_gamma_grad": FUNCTIONS["igamma_grad_a"][1]}


def told(m, function, operands):
    """Shape, dtype and weakness of the result, or 'refused'; booleans are not weak.

    The peer calls some booleans weak; nothing that is computed with them depends on it.
    """
    try:
        out = m.eval_shape(lambda: function(m.lax, *operands))
    except TypeError:
        return "refused"
    return out.shape, np.dtype(out.dtype).name, bool(out.weak_type and out.dtype != bool)


PYTHON = (bool, int, float, complex)  # of which each holds the numbers of those before


def is_number(x):
    return isinstance(x, PYTHON) and not isinstance(x, np.generic)


def fitted(operands):
    """``operands`` with Python's numbers in the dtype of the others, as lax takes them here. The
    peer refuses those that do not have it anyway.
    """
    numbers = [x for x in operands if is_number(x)]
    others = [x for x in operands if not is_number(x)]
    kind = max([type(x) for x in numbers], key=PYTHON.index, default=bool)
    if not others:
        return [kind(x) for x in operands]
    dtype = others[0].dtype
    if PYTHON.index(kind) > "bifc".index(dtype.kind.replace("u", "i")):
        return operands
    weak = all(getattr(x, "weak_type", False) for x in others)
    made = {"b": bool, "i": int, "f": float, "c": complex}[dtype.kind] if weak else dtype.type
    return [made(x) if is_number(x) else x for x in operands]


def expected(name, kinds):
    """What the peer says of operands of ``kinds``, or of such as they are taken here."""
    function = PEERS.get(name, FUNCTIONS[name][1])
    operands = [KINDS[kind](jax) for kind in kinds]
    found = told(jax, function, operands)
    if found != "refused":
        return found
    operands = fitted(operands)
    taken, form = TAKEN.get(name, (set(), None))
    if {jax.numpy.result_type(x).name for x in operands} <= taken:
        return told(jax, lambda _, *xs: form(*xs), operands)
    return told(jax, function, operands)


def as_complex(x):
    weak = type(x) in PYTHON[1:] or getattr(x, "weak_type", False)
    return jax.lax.full(np.shape(x), 1j, None if weak else np.complex64)


INTS = {"int32", "uint8"}
# What is taken here alone: dtypes of all operands, and a function of the peer whose results have
# the types that those have.
TAKEN = {
    "abs": ({"uint8"}, jax.lax.sign),
    "add": ({"bool"}, jax.lax.max),
    "mul": ({"bool"}, jax.lax.max),
    "conj": ({"bool", "float16", *INTS}, as_complex),
    "pow": (INTS, jax.lax.max),
}


@pytest.fixture(autouse=True)
def quick_refusals():
    """The peer refuses much, and takes its time to make its tracebacks short."""
    before = jax.config.jax_traceback_filtering
    jax.config.update("jax_traceback_filtering", "off")
    yield
    jax.config.update("jax_traceback_filtering", before)


CASES = [
    (name, first)
    for name, (count, _) in FUNCTIONS.items()
    for first in (KINDS if count > 1 else ["any"])
]


@pytest.mark.parametrize("name, first", CASES)
def test_elementwise(name, first):
    """Whatever stands beside the ``first`` operand."""
    count, function = FUNCTIONS[name]
    wrong = []
    for kinds in itertools.product([first] if count > 1 else KINDS, *[KINDS] * (count - 1)):
        operands = [KINDS[kind](phalanx) for kind in kinds]
        several = len({np.shape(x) for x in operands}) > 1
        if several and exempt("shapes-as-jax", f"lax.{name}"):
            continue
        ours = told(phalanx, function, operands)
        if ours != (theirs := expected(name, kinds)):
            wrong.append((kinds, ours, theirs))
    assert not wrong


# ---- every function of lax and numpy ------------------------------------------------------------

STRENGTHS = ((False, False), (True, True), (True, False), (False, True))
CALLS = [
    call
    for call in calls()
    if call.room in ("lax", "numpy") and call.args is not None and not call.communicates
    and call.slots and hasattr(getattr(jax, call.room), call.name)
]  # fmt: skip


def of_peer(x):
    """An argument of ours as the peer has it: records and functions by their names."""
    if type(x) in (list, tuple):
        return type(x)(map(of_peer, x))
    theirs = getattr(jax.lax, getattr(x, "__name__", type(x).__name__), None)
    if theirs is None or not type(x).__module__.startswith(("phalanx", "builtins")):
        return x
    names = [*inspect.signature(type(x)).parameters] if type(x).__module__ != "builtins" else []
    return theirs(**{n: of_peer(getattr(x, n)) for n in names}) if names else theirs


def results(m, call, dtype, strengths):
    """Dtype and weakness of the results; the first operand, and the others, are as weak as said."""
    pairs = zip(call.slots, call.operands(dtype), strict=True)
    operands = [
        m.lax.full(x.shape, x.dtype.type(1).item())
        if slot.dtype is None and strengths[min(i, 1)]
        else m.numpy.asarray(x)
        for i, (slot, x) in enumerate(pairs)
    ]
    args, kwargs = call.arguments(operands)
    if m is jax:
        args, kwargs = of_peer(args), {k: of_peer(x) for k, x in kwargs.items()}
    out = m.eval_shape(lambda: getattr(getattr(m, call.room), call.name)(*args, **kwargs))
    return [(x.dtype, x.weak_type and x.dtype != bool) for x in m.tree.leaves(out)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", CALLS, ids=str)
def test_arrays(call):
    """Where the peer takes it. It forgets what is weak where it computes with constants of its own;
    here what all operands are is what the result is."""
    for dtype, strengths in itertools.product((call.dtype, np.int32), STRENGTHS):
        try:
            theirs = results(jax, call, dtype, strengths)
            ours = results(phalanx, call, dtype, strengths)
        except Exception:  # of dtypes that one of them refuses, other laws speak
            continue
        assert [d for d, _ in ours] == [d for d, _ in theirs]
        free = [strengths[min(i, 1)] for i, slot in enumerate(call.slots) if slot.dtype is None]
        if all(free):
            ours = [(d, w or exempt("weak-types", call) is not None) for d, w in ours]
            theirs = [(d, w or ours_is) for (d, w), (_, ours_is) in zip(theirs, ours, strict=True)]
        assert ours == theirs, (dtype, strengths)
