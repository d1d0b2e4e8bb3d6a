"""Operations on integers of two and of four bits are those of integers, cut to so many bits, and
those of floats of a byte or less are those of float32, rounded.

They are tried in other processes: of some the compiler would end its own.
"""

import itertools
import os

import pytest

import phalanx
from tests.children import undone
from tests.laws.narrow import FUNCTIONS, NAMES, cases, float_cases

HEAVY = os.environ.get("PHALANX_HYPOTHESIS") == "heavy"
SHAPES = [(4,), (8, 5), (9,), (33,), (4, 4)]  # of arrays of any kind; of four parts, the even ones
OF_FLOATS = 41  # one of so many cases is tried; each dtype comes with each operation, in time
PRELUDE = "from tests.laws.narrow import check_floats, check_function, check_primitive, check_ways"


OVER_MESHES = {
    "all_gather", "all_to_all", "cut", "cut and joined", "operands differ", "pmax", "ppermute",
    "psum", "psum_scatter", "results spread", "spread", "sums of cuts",
}  # fmt: skip
REFUSED = "DeviceError: int2: programs over a mesh", "DeviceError: uint2: programs over a mesh"


def wrong(pieces):
    """What became of the pieces that were neither right nor refused in words."""
    found = undone(pieces, 4, PRELUDE)
    return {p: how for p, how in found.items() if not how.startswith(REFUSED)}


def of_each(choices):
    """Each choice of each case with every dtype, or with one of them in turn."""
    if HEAVY:
        return itertools.product(choices, NAMES)
    return zip(choices, itertools.cycle(NAMES))


def test_primitives(pytestconfig):
    first = 0 if HEAVY else (pytestconfig.option.hypothesis_seed or 0) % 3
    drawn = list(of_each(cases()))[first :: 1 if HEAVY else 3]
    assert not wrong(
        [
            f"check_primitive({name!r}, {number}, {kinds!r}, {dtype!r})"
            for (name, number, kinds), dtype in drawn
        ]
    )


@pytest.mark.parametrize("dtype", NAMES if HEAVY else ("int2", "uint4"))
def test_functions(dtype):
    shapes = SHAPES if HEAVY else [SHAPES[1 + NAMES.index(dtype) // 2]]
    assert not wrong(
        [
            f"check_function({name!r}, {dtype!r}, {(4, 4) if name in OVER_MESHES else shape})"
            for name in list(FUNCTIONS)[:: 1 if HEAVY or dtype == "int2" else 3]
            for shape in shapes
        ]
    )


def test_primitives_of_floats(pytestconfig):
    first = 0 if HEAVY else (pytestconfig.option.hypothesis_seed or 0) % OF_FLOATS
    drawn = float_cases()[first :: 1 if HEAVY else OF_FLOATS]
    assert not wrong([f"check_floats({name!r}, {n}, {dtype!r})" for name, n, dtype in drawn])


@pytest.mark.parametrize("dtype", ["float8_e8m0fnu", "int2"])
def test_foreign_functions_are_given_what_they_are_called_with(dtype):
    of = phalanx.ShapeDtypeStruct((3,), dtype)
    call = phalanx.ffi.ffi_call("nobody_registered_this", of)
    assert "convert" not in phalanx.jit(call).lower(of).as_text()


def test_ways():
    sizes = [(), (0,), (1,), (3,), (7,), (9,), (33,), (3, 5)]
    assert not wrong([f"check_ways({t!r}, {n})" for t in NAMES for n in sizes])
