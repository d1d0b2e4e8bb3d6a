"""Methods and properties of arrays do under every transformation what they do on an array.

What there is, is found in the class. Names that tell of devices and memory, and those that hand
elements to Python, are refused in words where there are none yet.
"""

from pathlib import Path

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import errors
from phalanx.run.array import OfData

X = jnp.asarray(np.array([[0.5, 2.0, 1.5], [3.0, 1.0, 2.5]], np.float32))
K = jnp.asarray(np.array([[0, 2, 1], [1, 0, 2]], np.int32))
ARRAY = type(X)

ARGUMENTS = {
    "astype": (np.int32,), "argpartition": (1,), "choose": ([1.0, 2.0, 3.0],), "clip": (1, 2),
    "compress": (np.array([True, False]), 0), "dot": (np.ones(3, np.float32),), "partition": (1,),
    "repeat": (2,), "reshape": (3, 2), "searchsorted": (1.5,), "swapaxes": (0, 1),
    "take": (np.array([0, 2]),), "view": (np.int32,), "to_device": (phalanx.devices()[0],),
    "__getitem__": (1,),
    "__contains__": (2.0,), "__matmul__": (np.ones((3, 2), np.float32),),
    "__rmatmul__": (np.ones((2, 2), np.float32),), "__round__": (1,),
    "addressable_data": (0,),
}  # fmt: skip
KEYWORDS = {"nonzero": {"size": 4}, "choose": {"mode": "clip"}}
BINARY = [
    "add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "and", "or", "xor",
    "lshift", "rshift",
]  # fmt: skip
COMPARED = ["eq", "ne", "lt", "le", "gt", "ge"]
ARGUMENTS |= {f"__{r}{name}__": (2,) for name in BINARY for r in ("", "r")}
ARGUMENTS |= {f"__{name}__": (2,) for name in COMPARED}
INTEGRAL = {f"__{r}{n}__" for n in ("and", "or", "xor", "lshift", "rshift") for r in ("", "r")}
INTEGRAL |= {"__invert__", "choose", "__index__"}
VECTORS = {"searchsorted", "__contains__"}

OWN = set(dir(ARRAY)) - set(dir(object)) | {"__eq__", "__ne__", "__lt__", "__le__", "__gt__"}
PRIVATE = {n for n in OWN if n.startswith("_") and not n.endswith("__")}
# what the package jax looks for is told of elsewhere (tests/units/base/test_beside.py)
ABSENT = {n for n in OWN - PRIVATE if not hasattr(X, n)} - {"__jax_array__"}
CALLED = sorted(
    OWN
    - PRIVATE
    - ABSENT
    # what makes and unmakes objects, and what is tried elsewhere: copies, buffers, assignment
    - {"__dict__", "__module__", "__slots__", "__weakref__", "__annotations__", "__firstlineno__"}
    - {"delete", "__static_attributes__", "__setitem__", "__array_priority__", "__copy__"}
    - {"__deepcopy__", "__dlpack__", "__dlpack_device__", "at"}
    - {"unsafe_buffer_pointer", "__jax_array__"}
)
PROTOCOLS = {"__bool__", "__int__", "__float__", "__complex__", "__index__", "__array__"}
TO_PYTHON = PROTOCOLS | {"item", "tolist", "tobytes", "__contains__"}
HELD = {n for n in CALLED if isinstance(getattr(phalanx.Array, n, None), OfData)} - {"aval"}
REFUSED = (errors.ConcretizationTypeError, AttributeError)


def operand(name):
    """The array that has the method: of rank 0 where Python takes an element."""
    x = K if name in INTEGRAL else X
    if name in PROTOCOLS - {"__array__"} or name == "item":
        return x[0, 1]
    return x[1] if name in VECTORS else x


def use(name, x):
    member = getattr(x, name)
    if not callable(member) or isinstance(member, np.dtype):
        return member
    out = member(*ARGUMENTS.get(name, ()), **KEYWORDS.get(name, {}))
    return list(out) if name == "__iter__" else out


COMMON = [n for n in CALLED if n not in HELD | TO_PYTHON]
ON_ARRAYS = [n for n in COMMON if isinstance(use(n, operand(n)), phalanx.Array | list | tuple)]
ON_ARRAYS = [n for n in ON_ARRAYS if n != "shape"]


def every(operands):
    return {n: use(n, operands[n]) for n in ON_ARRAYS}


OPERANDS = {n: operand(n) for n in ON_ARRAYS}


def equal(found, expected):
    assert phalanx.tree.structure(found) == phalanx.tree.structure(expected)
    for name in expected:
        leaves = phalanx.tree.leaves(found[name]), phalanx.tree.leaves(expected[name])
        for a, b in zip(*leaves, strict=True):
            assert a.dtype == b.dtype, name
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6, err_msg=name)


def test_there_is_much_to_try():
    assert len(ON_ARRAYS) > 80 and {"var", "trace", "T", "__add__", "sort"} <= set(ON_ARRAYS)


def test_names_that_are_ours_alone_are_private():
    numpy_s = set(dir(np.ndarray)) | {"ptp", "itemset"}  # which NumPy 1 had
    ours = {n for n in OWN - PRIVATE if not n.startswith("__")} - numpy_s - ABSENT
    assert ours == {
        "addressable_data", "addressable_shards", "at", "aval", "block_until_ready", "clone",
        "committed", "copy_to_host_async", "delete", "devices", "format", "global_shards",
        "is_deleted", "is_fully_addressable", "is_fully_replicated", "is_ready",
        "on_device_size_in_bytes", "platform", "sharding", "unsafe_buffer_pointer", "weak_type",
    } - numpy_s  # fmt: skip
    traced = []
    phalanx.jit(lambda x: traced.extend(dir(x)) or x)(X)
    phalanx.vmap(lambda x: traced.extend(dir(x)) or x)(X)
    phalanx.grad(lambda x: traced.extend(dir(x)) or x.sum())(X)
    assert {n for n in traced if not n.startswith("_")} <= OWN | {"mat"}  # of traced values alone


def test_under_jit():
    equal(phalanx.jit(every)(OPERANDS), every(OPERANDS))


def test_under_disable_jit():
    with phalanx.disable_jit():
        equal(phalanx.jit(every)(OPERANDS), every(OPERANDS))


@pytest.mark.parametrize("mapped", [phalanx.vmap, phalanx.pmap])
def test_under_maps(mapped):
    lanes = [OPERANDS, {n: x[::-1] if x.ndim else x for n, x in OPERANDS.items()}]
    stacked = phalanx.tree.map(lambda *xs: jnp.stack(xs), *lanes)
    found = mapped(every)(stacked)
    for i, operands in enumerate(lanes):
        equal(phalanx.tree.map(lambda x, i=i: x[i], found), every(operands))


@pytest.mark.parametrize("staged", [False, True])
def test_under_derivatives(staged):
    floats = {n: x for n, x in OPERANDS.items() if n not in INTEGRAL}

    def function(floats):
        return {n: use(n, x) for n, x in floats.items()}

    ones = phalanx.tree.map(jnp.ones_like, floats)
    around = phalanx.jit if staged else lambda f: f
    found, slopes = around(lambda x, t: phalanx.jvp(function, (x,), (t,)))(floats, ones)
    equal(found, function(floats))
    reference = phalanx.jit(lambda x, t: phalanx.jvp(function, (x,), (t,)))(floats, ones)[1]
    for a, b in zip(phalanx.tree.leaves(slopes), phalanx.tree.leaves(reference), strict=True):
        assert a.dtype == b.dtype
        if a.dtype != phalanx.float0:
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def within(around, name):
    """What ``use`` gives inside a transformation: a result, or the error that it raises."""
    seen = []

    def function(x):
        try:
            seen.append(use(name, x))
        except Exception as error:
            seen.append(error)
        return x * 1.0 if around is not phalanx.grad else (x * 1.0).sum()

    x = operand(name)
    x = x.astype(jnp.float32) if around is phalanx.grad and name not in INTEGRAL else x
    if around in (phalanx.vmap, phalanx.pmap):
        x = x[None]
    around(function, allow_int=True)(x) if around is phalanx.grad else around(function)(x)
    return seen[0]


AROUND = [phalanx.jit, phalanx.vmap, phalanx.pmap, phalanx.grad]
PLAIN = [n for n in COMMON if n not in ON_ARRAYS and n not in ("__hash__", "__repr__", "__str__")]


@pytest.mark.parametrize("around", AROUND)
def test_what_is_no_array_is_the_same(around):
    for name in PLAIN:
        if name not in ("__format__", "__reduce__", "__array_namespace__"):
            assert within(around, name) == use(name, operand(name)), name
    assert within(around, "__array_namespace__") is jnp


@pytest.mark.parametrize("around", AROUND)
def test_what_only_arrays_with_data_have_is_refused_in_words(around):
    for name in sorted(HELD):
        out = within(around, name)
        assert isinstance(out, REFUSED) and len(str(out)) > 40, (name, out)


@pytest.mark.parametrize("around", AROUND)
def test_elements_are_not_handed_to_python(around):
    for name in sorted(TO_PYTHON):
        out = within(around, name)
        known = around is phalanx.grad and (
            name in ("__bool__", "__contains__") or name in INTEGRAL
        )
        assert known or (isinstance(out, REFUSED) and "test_methods" in str(out)), (name, out)


def test_with_data_everything_works():
    for name in sorted(HELD | TO_PYTHON | set(PLAIN) - {"__hash__"}):
        assert use(name, operand(name)) is not NotImplemented, name


def test_what_changes_an_array_in_other_libraries_is_told_of():
    assert {"add_", "masked_fill_", "chunk", "numel", "gather", "dim", "contiguous"} <= ABSENT
    with pytest.raises(AttributeError, match=r"arrays are immutable; x \+ y is a new one"):
        X.add_(1)
    with pytest.raises(AttributeError, match=r"before, x\.at\[index\]\.set"):
        X.at.set(1)
    with pytest.raises(TypeError, match=r"x\.reshape\(-1\) gives another shape"):
        X.view(-1)


@pytest.mark.parametrize("name", sorted(ABSENT))
def test_what_there_is_not_is_refused_with_advice(name):
    advice = rf"f32\[2,3\] has no attribute '{name}': .+"
    with pytest.raises(AttributeError, match=advice) as caught:
        getattr(X, name)
    assert caught.traceback[-1].path == Path(__file__)  # and no line of ours
    assert name not in dir(X)
