"""What mistakes in ``shard_map`` get: before anything is compiled, with the user's line."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import P, lax
from tests.golden.mistakes import Mistakes

pytestmark = pytest.mark.skipif(phalanx.device_count() < 4, reason="needs a mesh of 2 x 2")
mistake = Mistakes(__file__)
ROWS = np.ones((6, 4), np.float32)


def over_mesh(f, in_specs, out_specs, **options):
    mesh = phalanx.make_mesh((2, 2), ("data", "model"))
    return phalanx.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, **options)


def same(*args):
    return args[0]


@mistake
def spec_longer_than_the_rank():
    over_mesh(same, P("data", None, "model"), P("data"))(ROWS)


@mistake
def spec_of_all_arguments_longer_than_the_rank_of_one():
    over_mesh(lambda x, y: x, P(None, "data"), P())(ROWS, ROWS[0])


@mistake
def spec_of_a_result_longer_than_the_rank():
    over_mesh(jnp.sum, P("data"), P("data"))(ROWS)


@mistake
def axis_that_the_mesh_lacks():
    def step(params, batch):
        return batch

    over_mesh(step, ({"w": P("modle")}, P("data")), P("data"))({"w": ROWS}, ROWS)


@mistake
def axis_used_twice():
    over_mesh(same, P("data", "data"), P("data"))(ROWS)


@mistake
def rows_that_axes_do_not_divide():
    over_mesh(same, P(("data", "model")), P(("data", "model")))(ROWS)


@mistake
def no_rows_for_an_axis():
    over_mesh(same, P("data"), P("data"))(ROWS[:1])


@mistake
def too_few_specs():
    over_mesh(same, (P("data"),), P("data"))(ROWS, ROWS)


@mistake
def specs_of_other_results():
    over_mesh(lambda x: {"a": x}, P("data"), {"b": P("data")})(ROWS)


@mistake
def spec_that_is_a_string():
    over_mesh(same, "data", P("data"))(ROWS)


@mistake
def result_that_is_not_the_same():
    def loss(x):
        y = x - lax.pmean(x, "data")
        return jnp.sum(y * y)

    over_mesh(loss, P("data"), P())(ROWS)


@mistake
def collective_over_another_axis():
    over_mesh(lambda x: lax.psum(x, "batch"), P("data"), P())(ROWS)


@mistake
def collective_over_an_axis_left_to_the_compiler():
    over_mesh(lambda x: lax.psum(x, "model"), P("data"), P(), axis_names={"data"})(ROWS)


@mistake
def results_that_are_those_of_one_position():
    over_mesh(lambda x: x, P("data"), P())(ROWS)


@mistake
def no_specs_along_axes_left_to_the_compiler():
    mesh = phalanx.make_mesh((2, 2), ("data", "model"))
    phalanx.shard_map(same, mesh=mesh, out_specs=P())(ROWS)


@mistake
def no_specs_for_what_lies_over_another_mesh():
    explicit = phalanx.sharding.AxisType.Explicit
    mesh = phalanx.make_mesh((2, 2), ("data", "model"), (explicit, explicit))
    line = phalanx.make_mesh((4,), "line", explicit)
    x = phalanx.device_put(ROWS[:4], phalanx.NamedSharding(line, P("line")))
    phalanx.shard_map(same, mesh=mesh, out_specs=P())(x)


@mistake
def gathered_as_unreduced():
    over_mesh(lambda x: lax.all_gather(x, "data", to="unreduced"), P("data"), P())(ROWS)


@mistake
def gathered_in_groups_as_the_same():
    groups = [[0], [1]]
    over_mesh(
        lambda x: lax.all_gather(x, "data", axis_index_groups=groups, to="invarying"),  # HERE
        P("data"),
        P(),
    )(ROWS)


@mistake
def cast_to_what_is_the_same():
    over_mesh(lambda x: lax.pcast(x, "data", to="invarying"), P("data"), P())(ROWS)


@mistake
def tangent_that_varies_more_than_its_result():
    @phalanx.custom_jvp
    def mean(x):
        return lax.pmean(x.sum(), "data")

    @mean.defjvp
    def rule(primals, tangents):
        return mean(*primals), tangents[0].sum()

    def slope(x):
        return phalanx.grad(mean)(x)  # HERE

    over_mesh(slope, P("data"), P("data"))(ROWS)


@mistake
def axes_that_a_pmap_around_it_has_taken():
    mesh = phalanx.make_mesh((2, 2), ("data", "model"))

    def lane(x):
        return phalanx.shard_map(same, in_specs=P(), out_specs=P(), axis_names={"data"})(x)  # HERE

    phalanx.pmap(lane, axis_name="data", mesh=mesh)(ROWS)


@mistake
def no_mesh():
    phalanx.shard_map(same, in_specs=P("data"), out_specs=P("data"))(ROWS)


@mistake
def mesh_that_is_none():
    phalanx.shard_map(same, mesh=(2, 2), in_specs=P("data"), out_specs=P("data"))(ROWS)


@mistake
def axis_names_that_the_mesh_lacks():
    over_mesh(same, P("data"), P("data"), axis_names={"dta"})(ROWS)


@mistake
def argument_by_keyword():
    over_mesh(lambda x: x, P("data"), P("data"))(x=ROWS)


@mistake
def argument_that_is_no_array():
    over_mesh(same, P("data"), P("data"))("rows")


def test_messages(golden):
    golden(mistake.texts())
