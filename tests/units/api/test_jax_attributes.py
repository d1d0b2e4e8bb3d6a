"""What types, variables and constants of programs are asked for under JAX's names."""

import phalanx
import phalanx.numpy as jnp
from phalanx.core.program import Literal
from phalanx.dtypes import float0


def test_types_have_the_names_of_avals():
    kind = phalanx.typeof(jnp.asarray(2.0))
    whole = phalanx.typeof(jnp.arange(3))
    assert kind.weak_type and not kind.strip_weak_type().weak_type
    assert kind.to_tangent_aval() is kind
    assert whole.to_tangent_aval() is whole.at_least_vspace() is whole.update(dtype=float0)
    assert whole.str_short(short_dtypes=True) == str(whole) == "i32[3]"


def test_atoms_of_programs_have_the_type_and_the_value():
    (equation,) = phalanx.make_program(lambda x: 2.0 * x)(jnp.ones(3)).equations
    two, x = sorted(equation.inputs, key=lambda atom: not isinstance(atom, Literal))
    assert two.val == 2.0 and two.aval is two.type
    assert x.aval is phalanx.typeof(jnp.ones(3))


def test_shardings_tell_their_devices_in_order():
    devices = phalanx.devices()[::-1]
    mesh = phalanx.sharding.Mesh(devices, "x")
    sharding = phalanx.NamedSharding(mesh, phalanx.P("x"))
    assert sharding._device_assignment == sharding._addressable_device_assignment == (*devices,)
    assert not mesh._any_axis_explicit
