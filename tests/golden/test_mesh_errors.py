"""What mistakes in ``pmap`` over a mesh get: before anything is compiled, with the user's line."""

import numpy as np

import phalanx
from phalanx import P, lax
from tests.golden.mistakes import Mistakes

mistake = Mistakes(__file__)
ROWS = np.ones((4, 3), np.float32)


def over_mesh(f, *args, axis_name=None, **options):
    mesh = phalanx.make_mesh((1, 1), ("data", "model"))
    return phalanx.pmap(f, axis_name, mesh=mesh, **options)(*args)


@mistake
def axis_that_the_mesh_lacks():
    over_mesh(lambda x: x, ROWS, axis_name=("data", "modle"))


@mistake
def axis_of_the_mesh_twice():
    over_mesh(lambda x: x, ROWS, axis_name=("data", "data"))


@mistake
def axes_without_a_mesh():
    phalanx.pmap(lambda x: x, axis_name=("data", "model"))(ROWS)


@mistake
def mesh_that_is_none():
    phalanx.pmap(lambda x: x, mesh=(2, 4))


@mistake
def mesh_and_devices():
    over_mesh(lambda x: x, ROWS, devices=phalanx.devices())


@mistake
def mesh_and_one_size():
    over_mesh(lambda x: x, ROWS, axis_size=4)


@mistake
def spec_longer_than_the_rank():
    over_mesh(lambda x, y: x, ROWS, ROWS, in_axes=(P("data"), P(None, "model", None)))


@mistake
def spec_with_an_axis_that_is_not_mapped():
    over_mesh(lambda x: x, ROWS, axis_name="data", in_axes=P("data", "model"))


@mistake
def spec_with_an_axis_twice():
    over_mesh(lambda x: x, ROWS, in_axes=P("data", "data"))


@mistake
def spec_with_two_axes_in_one_dimension():
    over_mesh(lambda x: x, ROWS, in_axes=P(("data", "model")))


@mistake
def spec_without_a_mesh():
    phalanx.pmap(lambda x: x, "data", in_axes=P("data"))(ROWS)


@mistake
def too_few_dimensions_for_the_axes():
    over_mesh(lambda x, y: x + y, ROWS, ROWS[0])


@mistake
def sizes_disagree_along_an_axis_of_a_mesh():
    over_mesh(lambda x, y: x, ROWS, ROWS, in_axes=(P("data"), P("model", "data")))


@mistake
def a_result_differs_along_the_other_axis():
    def scaled(w, x):
        return lax.pmean(w * x, "data")

    over_mesh(scaled, ROWS, 2.0, in_axes=(P("data", "model"), None), out_axes=P("data"))


def test_messages(golden):
    golden(mistake.texts())
