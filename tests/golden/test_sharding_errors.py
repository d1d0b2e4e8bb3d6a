"""What mistakes about shardings get: before anything is compiled, with the user's line."""

import numpy as np
import pytest

import phalanx
import phalanx.numpy as jnp
from phalanx import P, lax
from phalanx.sharding import AxisType, Mesh, NamedSharding
from tests.golden.mistakes import Mistakes

pytestmark = pytest.mark.skipif(phalanx.device_count() < 4, reason="needs a mesh of 2 x 2")
mistake = Mistakes(__file__)
ROWS = np.ones((6, 4), np.float32)


def over_mesh(*spec):
    return NamedSharding(phalanx.make_mesh((2, 2), ("data", "model")), P(*spec))


def over_line(*spec):
    return NamedSharding(Mesh(phalanx.devices()[:3], "line"), P(*spec))


def step(params, batch):
    return {"loss": jnp.sum(batch), "params": params["w"]}


@mistake
def argument_that_axes_do_not_divide():
    specs = ({"w": over_mesh()}, over_mesh(("data", "model")))
    phalanx.jit(step, in_shardings=specs)({"w": ROWS}, ROWS)


@mistake
def result_that_an_axis_does_not_divide():
    specs = {"loss": None, "params": over_mesh(("data", "model"))}
    phalanx.jit(step, out_shardings=specs)({"w": ROWS}, ROWS)


@mistake
def spec_of_a_result_longer_than_the_rank():
    phalanx.jit(step, out_shardings=over_mesh("data"))({"w": ROWS}, ROWS)


@mistake
def shardings_of_other_arguments():
    specs = ({"v": over_mesh()}, over_mesh("data"))
    phalanx.jit(step, in_shardings=specs)({"w": ROWS}, ROWS)


@mistake
def shardings_of_other_results():
    phalanx.jit(step, out_shardings=(over_mesh(), over_mesh()))({"w": ROWS}, ROWS)


@mistake
def sharding_that_is_a_device():
    phalanx.jit(step, in_shardings=phalanx.devices()[0])


@mistake
def argument_by_keyword():
    phalanx.jit(step, in_shardings=(over_mesh(),))({"w": ROWS}, batch=ROWS)


@mistake
def argument_that_lies_elsewhere():
    batch = phalanx.device_put(ROWS, over_mesh("data"))
    phalanx.jit(step, in_shardings=over_mesh("data", "model"))({"w": ROWS}, batch)


@mistake
def argument_of_a_compiled_function_that_lies_elsewhere():
    compiled = phalanx.jit(step, in_shardings=over_mesh("data")).lower({"w": ROWS}, ROWS).compile()
    compiled({"w": ROWS}, phalanx.device_put(ROWS, over_mesh(None, "model")))


@mistake
def argument_over_more_devices_than_a_shard_map_inside():
    rows = phalanx.device_put(ROWS, over_mesh("data"))
    line = over_line().mesh
    double = phalanx.shard_map(lambda x: 2 * x, mesh=line, in_specs=P("line"), out_specs=P("line"))
    phalanx.jit(lambda batch: double(batch) + 1)(rows)


@mistake
def value_put_on_other_devices_inside_jit():
    rows = phalanx.device_put(ROWS, over_mesh("data"))
    phalanx.jit(lambda batch: phalanx.device_put(2 * batch, over_line("line")))(rows)


@mistake
def constraint_without_devices_for_an_argument_that_has_one():
    somewhere = NamedSharding(phalanx.sharding.AbstractMesh((2, 2), ("data", "model")), P("data"))
    phalanx.jit(lambda batch: lax.with_sharding_constraint(batch, somewhere))(ROWS)


@mistake
def arguments_over_different_devices():
    phalanx.jit(step, in_shardings=(over_mesh(), over_line("line")))({"w": ROWS}, ROWS)


@mistake
def constraint_over_other_devices():
    def shifted(batch):
        return lax.with_sharding_constraint(batch + 1, over_line("line"))

    phalanx.jit(shifted, in_shardings=over_mesh("data"))(ROWS)


@mistake
def constraint_over_devices_that_a_region_leaves():
    mesh = Mesh(phalanx.devices()[:2], "pair")

    def doubled(batch):
        rows = P("pair")
        twice = phalanx.shard_map(lambda x: 2 * x, mesh=mesh, in_specs=rows, out_specs=rows)
        return lax.with_sharding_constraint(twice(batch), over_mesh("data"))

    phalanx.jit(doubled)(ROWS)


@mistake
def constraint_along_an_axis_that_is_taken():
    mesh = phalanx.make_mesh((2, 2), ("data", "model"))

    @phalanx.shard_map(mesh=mesh, in_specs=P("data"), out_specs=P("data"))
    def block(x):
        return lax.with_sharding_constraint(x + 1, over_mesh(None, "data"))

    block(ROWS)


@mistake
def specs_without_a_mesh():
    phalanx.jit(step, in_shardings=P("data"))({"w": ROWS}, ROWS)


@mistake
def constraint_without_a_mesh():
    lax.with_sharding_constraint(ROWS, P("data"))


@mistake
def argument_left_to_the_compiler():
    phalanx.jit(step, in_shardings=over_mesh(P.UNCONSTRAINED))({"w": ROWS}, ROWS)


@mistake
def constraint_longer_than_the_rank():
    phalanx.jit(lambda x: lax.with_sharding_constraint(x, over_mesh(None, None, "data")))(ROWS)


@mistake
def constraints_on_other_values():
    lax.with_sharding_constraint({"a": ROWS}, {"b": over_mesh("data")})


@mistake
def constraint_that_is_a_string():
    lax.with_sharding_constraint(ROWS, "data")


@mistake
def array_that_an_axis_does_not_divide():
    phalanx.reshard(ROWS, over_mesh(("data", "model")))


@mistake
def parts_of_several_dtypes():
    halves = [np.zeros(2, np.float32), np.zeros(2, np.int32)]
    phalanx.make_array_from_callback((4,), over_mesh("data"), lambda i: halves[i[0].start // 2])


@mistake
def global_shape_of_another_rank():
    phalanx.make_array_from_process_local_data(over_mesh("data"), ROWS, (6,))


@mistake
def global_shape_that_the_data_do_not_make():
    phalanx.make_array_from_process_local_data(over_mesh("data"), ROWS, (7, 4))


@mistake
def local_data_that_axes_do_not_divide():
    phalanx.make_array_from_process_local_data(over_mesh(("data", "model")), ROWS)


@mistake
def mesh_without_positions():
    phalanx.make_mesh((2, 0), ("data", "model"))


@mistake
def memory_that_devices_do_not_have():
    over_mesh().with_memory_kind("host")


@mistake
def sum_left_to_take_of_what_is_cut_by_another_axis():
    mesh = phalanx.make_mesh((2, 2), ("data", "model"), (AxisType.Explicit,) * 2)
    with phalanx.set_mesh(mesh):
        x, w = phalanx.device_put((ROWS, ROWS.T), (P(None, "model"), P("model")))
        jnp.matmul(x, w, out_sharding=P(unreduced={"data"}))


def test_messages(golden):
    golden(mistake.texts())
