"""`./dev drift` says what is new and not here, and what is gone and still here."""

import sys

from tests import census, drift

BEFORE = {
    "modules": ["jax.numpy", "jax.maps"],
    "public": {"jax.numpy": {"sin": ["x"], "old": None, "max": ["a", "axis"]}},
    "private": {"jax._src.core": ["Trace", "Other"], "jax._src.gone": ["f"]},
    "jaxlib": ["jaxlib._jax.Client", "jaxlib._jax.Client.compile"],
}
AFTER = {
    "modules": ["jax.numpy", "jax.fresh"],
    "public": {"jax.numpy": {"sin": ["x", "accuracy"], "new": [], "max": None}},
    "private": {"jax._src.core": ["Trace"]},
    "jaxlib": ["jaxlib._jax.Client"],
}
HERE = {
    "jax.maps", "jax.numpy.sin", "jax.numpy.old", "jax.numpy.max", "jax._src.core.Other",
    "jax._src.gone.f",
}  # fmt: skip


def test_differences_are_told_and_which_are_to_be_looked_at():
    said = drift.differences(BEFORE, AFTER, lambda *path: ".".join(path) in HERE)
    assert list(said) == [
        "* new, not here: module jax.fresh",
        "* gone, here: module jax.maps",
        "* new, not here: jax.numpy.new",
        "* gone, here: jax.numpy.old",
        "* new, not here: jax.numpy.sin(accuracy=)",
        "* gone, here: jax._src.core.Other",
        "* gone, here: jax._src.gone.f",
        "* gone, here: jaxlib._jax.Client.compile",
    ]
    assert list(drift.differences(BEFORE, BEFORE, lambda *path: True)) == []


def test_a_jaxlib_that_our_own_range_leaves_out():
    assert drift.left_out("0.10.2") == "" and "jaxlib" in drift.left_out("99.0")


def test_the_census_holds_names_parameters_and_what_the_stubs_declare():
    found = drift.of(sys.executable)
    assert "accuracy" in found["public"]["jax.lax"]["sin"]
    assert sum(map(len, found["public"].values())) > 2400
    assert {"jaxlib._jax.Device", "jaxlib.mlir.ir.Context"} <= {*found["jaxlib"]}
    assert len(found["private"]) > 40 and "jax.numpy" in found["modules"]
    assert census.table().VERSION[0].isdigit()
