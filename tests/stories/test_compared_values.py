"""Which values processes compare before a first launch, and which they leave alone."""

import pytest

from tests.stories.test_processes import launch  # noqa: F401

CUT = """
mesh = phalanx.make_mesh((count,), ("d",))
x = phalanx.make_array_from_process_local_data(NamedSharding(mesh, P("d")), np.float32([[me]]))
def tell_how_it_ends(f, *args):
    try:
        tell(f(*args))
    except phalanx.errors.ProgramMismatch as error:
        tell(str(error).partition(", at ")[0].partition(": ")[2])
"""


@pytest.mark.parametrize("value", ["jnp.arange(3.) + me", "np.float32([me, 1, 2])"])
def test_what_a_captured_reference_holds_is_compared(launch, value):  # noqa: F811
    story = (
        CUT
        + f"""
ref = phalanx.new_ref({value})
tell_how_it_ends(phalanx.jit(lambda x: x.sum() + ref[...].sum()), x)
"""
    )
    ended = launch(2, story)
    assert len(ended.told) == 2
    for told in ended.told.values():
        assert told[0].endswith("[0] must be the same in all processes, and is 0.0 in process 0 "
                                "and 1.0 in process 1")  # fmt: skip


def test_captured_arrays_over_processes_are_compared(launch):  # noqa: F811
    story = (
        CUT
        + """
whole = NamedSharding(mesh, P())
same, other = (phalanx.device_put(np.float32([4, i]), whole) for i in (5, me))
tell_how_it_ends(phalanx.jit(lambda x: x.sum() + same.sum()), x)
tell_how_it_ends(phalanx.jit(lambda x: x.sum() + (same * other).sum()), x)
"""
    )
    ended = launch(2, story)
    assert len(ended.told) == 2
    for told in ended.told.values():
        assert told == [
            "10.0",
            "captured constant 1[1] must be the same in all processes, and is 0.0 in process 0 "
            "and 1.0 in process 1",
        ]


def test_names_of_arguments_may_differ(launch):  # noqa: F811
    story = (
        CUT
        + """
class Key:
    def __repr__(self):
        return f"key of {me}"
key = Key()
tell_how_it_ends(phalanx.jit(lambda w, x: w[key] + x.sum()), {key: np.float32(2)}, x)
tell_how_it_ends(phalanx.jit(lambda w, x: w[key] * x.sum()), {key: np.float32(me)}, x)
"""
    )
    ended = launch(2, story)
    assert len(ended.told) == 2
    for told in ended.told.values():
        assert told == [
            "3.0",
            "w[key of 0] must be the same in all processes, and is 0.0 in process 0 and 1.0 in "
            "process 1",
        ]


ROWS = """
import warnings
def tell_warnings(f, *args, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        phalanx.pmap(f, "i", **options)(*args)
    tell(*[str(w.message).partition(": ")[2] for w in caught] or ["no warning"])
"""


def test_copies_for_each_device_and_rows_that_nothing_needs_are_not_warned_of(launch):  # noqa: F811
    story = (
        ROWS
        + """
weights = np.float32([1, 2, 3])
tell_warnings(lambda w: lax.pmean(w, "i"), np.stack([weights] * 2))
tell_warnings(lambda w: lax.psum(w, "i"), np.stack([weights] * 2, 1), in_axes=1)
tell_warnings(lambda w: lax.pmax(w, "i"), np.broadcast_to(weights, (2, 3)))
tell_warnings(lambda _: lax.axis_index("i"), np.arange(2))
"""
    )
    ended = launch(2, story, devices=2)
    assert ended.told == {p: ["no warning"] * 4 for p in range(2)}


def test_rows_in_another_dimension_are_counted_there(launch):  # noqa: F811
    story = (
        ROWS
        + """
tell_warnings(lambda x: lax.psum(x, "i"), np.arange(6.0).reshape(3, 2), in_axes=1)
"""
    )
    ended = launch(2, story, devices=2)
    assert len(ended.told) == 2
    for told in ended.told.values():
        assert told == [
            "all 2 processes pass the same 2 rows as x, so each row counts 2 times. Pass to each "
            "process its own: x[:, phalanx.process_rows(x.shape[1])]"
        ]


def test_arguments_that_nothing_needs_may_differ(launch):  # noqa: F811
    story = """
f = phalanx.pmap(lambda w, x: lax.psum(x, "i"), "i", in_axes=(None, 0), out_axes=None)
tell(f(np.float32(me), np.float32([me])))
"""
    ended = launch(2, story)
    assert ended.told == {0: ["1.0"], 1: ["1.0"]}
