"""What programs under the mode look for in messages is in them, too."""

import ast
import inspect
from pathlib import Path
from string import Formatter

import numpy as np
import pytest

import phalanx
import phalanx.lax as lax
import phalanx.numpy as jnp
from phalanx.base import dialect
from phalanx.base.dialect import Dialect
from phalanx.compat.avals import ShapedArray
from phalanx.compat.phrases import _PHRASES
from phalanx.compat.worded import as_served
from phalanx.experimental.pjit import pjit
from phalanx.sharding import AxisType, NamedSharding
from phalanx.sharding import PartitionSpec as P

pytestmark = [
    pytest.mark.usefixtures("served"),
    pytest.mark.skipif(phalanx.device_count() < 4, reason="a mesh of two axes"),
]


@pytest.fixture(autouse=True)
def worded(monkeypatch):
    monkeypatch.setattr(dialect, "spoken", Dialect(message=as_served))


def mesh(kind=AxisType.Explicit):
    return phalanx.make_mesh((2, 2), ("x", "y"), (kind,) * 2)


def laid(*spec):
    return phalanx.reshard(jnp.ones((4, 4)), P(*spec))


def carried():
    return lax.scan(lambda c, _: (phalanx.reshard(c, P()), None), laid("x"), None, length=2)


ALONG_EXPLICIT_AXES = {
    "Contracting dimensions are sharded": lambda: laid("x", "y") @ laid("y"),
    "dot_general operation .*illegally sharded result": lambda: laid("x") @ laid(None, "x"),
    "mul got incompatible shardings for broadcasting": lambda: laid("x") * laid("y"),
    "select cases must have the same shardings": lambda: lax.select(
        jnp.ones((4, 4), bool), laid("x"), laid("y")
    ),
    "slicing on sharded dims": lambda: lax.slice_in_dim(laid("x"), 0, 3),
    "padding on sharded dims": lambda: lax.pad(laid("x"), 0.0, [(1, 0, 0), (0, 0, 0)]),
    "This reshape is not supported": lambda: lax.reshape(laid("x", "y"), (2, 8)),
    "0th dimension of all xs should be replicated": lambda: lax.scan(
        lambda c, x: (c, x), 0, laid("x")
    ),
    "scan.*carry input and carry output must have equal types": carried,
    "Mapped away dimension of inputs .* should be sharded the same": lambda: phalanx.vmap(jnp.add)(
        laid("x"), laid("y")
    ),
    "Only one of spmd_axis_name or arrays sharded on `Explicit` mesh axis type": lambda: (
        phalanx.vmap(jnp.sin, spmd_axis_name="y")(laid("x"))
    ),
    "lhs is unreduced while rhs is not": lambda: summed("y") + laid("x"),
    "lhs and rhs to `add` must be unreduced along the same": lambda: summed("y") + summed("x"),
    "unreduced axes should be equal to the contracting specs": lambda: jnp.einsum(
        "ab,bc->ac", laid(None, "y"), laid("x"), out_sharding=P(unreduced={"y"})
    ),
}


ROWS = P("x")


def mapped(f, ins=ROWS, outs=ROWS, **options):
    f = phalanx.shard_map(f, in_specs=ins, out_specs=outs, **options)
    return lambda: f(laid("x"))


def constrained(x):
    return lax.with_sharding_constraint(x, P("x"))


def cast_twice(x):
    return lax.pcast(lax.pcast(x, "y", to="reduced"), ("x", "y"), to="unreduced")


IN_SHARD_MAP = {
    "Found an unbound axis name: z. .* call psum under `jax": mapped(lambda x: lax.psum(x, "z")),
    "require replication .* statically inferred": mapped(lambda x: x, outs=P()),
    r"out_specs is P\('y'\) which implies .* across mesh axes \{y\} and not \{x\}, but it was "
    r"inferred to be possibly varying over \{x,y\}": mapped(lambda x: x, P("x", "y"), P("y")),
    "pvary should be called under jax.shard_map": lambda: lax.pcast(1.0, "x", to="varying"),
    "unreduced rule for sin is not implemented": mapped(
        lambda x: jnp.sin(lax.pcast(x, "x", to="unreduced"))
    ),
    "vmap spmd_axis_name cannot appear in": lambda: phalanx.vmap(
        phalanx.shard_map(lambda x: x, in_specs=P("x"), out_specs=P("x")), spmd_axis_name="x"
    )(laid(None, "y")),
    "shard_map applied to the function 'constrained'": mapped(constrained, P("x", None, None)),
    "out_specs passed to shard_map": mapped(lambda x: x, outs=P("x", unreduced={"y"})),
    "jax.lax.pcast can only accept axis_name which": mapped(cast_twice),
    "contains a manual axes.*of mesh": mapped(constrained, axis_names={"x"}),
    "shard_map requires axis_names.*subset of": lambda: phalanx.vmap(
        phalanx.shard_map(lambda x: x, in_specs=P("x"), out_specs=P("x"))
    )(laid("x")),
    "shard_map requires a non-empty mesh": mapped(lambda x: x, mesh=phalanx.get_mesh()),
}


@pytest.mark.parametrize("words", IN_SHARD_MAP)
def test_of_functions_of_blocks(words):
    with phalanx.set_mesh(mesh()), pytest.raises(Exception, match=words):
        phalanx.jit(IN_SHARD_MAP[words])()


def test_of_functions_of_blocks_without_a_mesh():
    with pytest.raises(ValueError, match="The context mesh cannot be empty"):
        phalanx.shard_map(jnp.sin, in_specs=P("x"), out_specs=P("x"))(jnp.ones(2))


def summed(along):
    return phalanx.reshard(jnp.ones((4, 4)), P(unreduced={along}))


@pytest.mark.parametrize("words", ALONG_EXPLICIT_AXES)
def test_of_operations_along_explicit_axes(words):
    with phalanx.set_mesh(mesh()), pytest.raises((ValueError, TypeError), match=words) as caught:
        phalanx.jit(ALONG_EXPLICIT_AXES[words])()
    assert str(caught.value).count("in JAX's words") == 1  # however many boundaries it crossed


ABOUT_SHARDINGS = {
    r"One of pjit arguments.*P\('x', 'y'\).*rank at least 2, but .* value of rank 1": lambda: pjit(
        jnp.sin, P("x", "y")
    )(jnp.ones(2)),
    "One of pjit outputs.*rank at least 1, but was applied to a value of rank 0": lambda: pjit(
        jnp.sum, out_shardings=P("x")
    )(jnp.ones(2)),
    "One of with_sharding_constraint arguments.*rank at least 2, but .* rank 1": lambda: (
        lax.with_sharding_constraint(jnp.ones(2), P("x", "y"))
    ),
    r"Resource axis: z of.*P\('z',\) is not found in mesh: \(.*x.*\)": lambda: pjit(
        jnp.sin, P("z")
    )(jnp.ones(2)),
    r"A single in_shardings .* P\('x', 'x'\) has duplicate entries for `x`": lambda: pjit(
        jnp.sin, P("x", "x")
    )(jnp.ones((2, 2))),
    "in_shardings leaf specifications .* PartitionSpec instances or None, but got x": lambda: pjit(
        jnp.sin, "x"
    ),
    "pjit does not support kwargs when in_shardings is specified": lambda: pjit(
        lambda x: x, in_shardings=P("x")
    )(x=jnp.ones(2)),
    "then out_shardings should not be specified": lambda: phalanx.jit(
        jnp.sin, out_shardings=P(), device=phalanx.devices()[0]
    ),
    "can't specify both a device and a backend": lambda: phalanx.jit(
        jnp.sin, device=phalanx.devices()[0], backend="cpu"
    ),
    r"Argument 'x\['a'\]' of shape float32\[4,2\] .*is not a valid JAX type": lambda: phalanx.jit(
        lambda x: x
    )({"a": phalanx.ShapeDtypeStruct((4, 2), "float32")}),
    "A ShapeDtypeStruct does not have a value": lambda: phalanx.jit(
        lambda x: phalanx.ShapeDtypeStruct((4, 2), "float32")
    )(1),
    "Unexpected None": lambda: NamedSharding(mesh(), None),
    r"Got argument 0 of concatenate with shape i.*\[2\] and argument 1 of": lambda: jnp.concatenate(
        [phalanx.device_put(np.arange(2), d) for d in phalanx.devices()[:2]]
    ),
    "contains manual axes": lambda: phalanx.set_mesh(mesh(AxisType.Manual)),
}


@pytest.mark.parametrize("words", ABOUT_SHARDINGS)
def test_of_shardings_that_are_asked(words):
    with mesh(AxisType.Auto), pytest.raises(Exception, match=words):
        ABOUT_SHARDINGS[words]()


@pytest.mark.parametrize(
    ("words", "function"),
    [
        ("Please set a mesh via `jax.set_mesh`.* passed to device_put", phalanx.device_put),
        ("with_sharding_constraint requires a non-empty mesh", lax.with_sharding_constraint),
        ("pjit requires a non-empty mesh", lambda x, spec: pjit(jnp.sin, spec)(x)),
        ("PartitionSpec when.*not under a mesh", lambda x, p: jnp.zeros(2, out_sharding=p)),
    ],
)
def test_of_specs_without_a_mesh(words, function):
    with pytest.raises(ValueError, match=words):
        function(jnp.ones(2), P("x"))


def test_of_functions_without_a_rule_for_tangents():
    bent = phalanx.custom_vjp(jnp.sin)
    bent.defvjp(lambda x: (x, None), lambda _, ct: (ct,))
    with pytest.raises(TypeError, match=r"forward-mode autodiff \(jvp\) to a custom_vjp function"):
        phalanx.jvp(bent, (1.0,), (1.0,))


NEEDED = {
    r"Attempted boolean conversion of traced array with shape i.*32\[\]\.": lambda x: 1 if x else 2,
    r"shape b.*\[\]": lambda x: 1 if x > 2 else 2,
    r"Abstract tracer value .* expected: traced array with shape i.*32\[\]": int,
    r"The __index__\(\) method was called on traced array with shape i.*32\[\]": range,
    r"__array__\(\) was called on traced array with shape i.*32\[\]": np.asarray,
    r"Array boolean indices must be concrete; got b.*\[2\]": lambda x: jnp.ones(2)[jnp.ones(2) > x],
    r"value encountered .*: traced array with shape b.*\[2\]": lambda x: jnp.nonzero(
        jnp.ones(2) > x
    ),
}


@pytest.mark.parametrize("words", NEEDED)
@pytest.mark.parametrize("kind", [int, np.int32])  # the type of a Python number is a weak one
def test_of_values_that_python_needs(words, kind):
    with pytest.raises(Exception, match=rf"\(in JAX's words: .*{words}"):
        phalanx.jit(lambda x: NEEDED[words](x))(kind(3))


def test_a_type_says_how_values_lie():
    over = mesh().abstract_mesh
    made = ShapedArray((4, 2), "float32", sharding=NamedSharding(over, P("x")))
    assert made.sharding.spec == P("x", None)
    with pytest.raises(ValueError, match="does not divide dimension 0"):
        ShapedArray((3, 2), "float32", sharding=NamedSharding(over, P("x")))


def codes():
    """Of each code that an error gets somewhere the names of the parts of its message."""
    found = {}
    for file in Path(phalanx.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("coded", "errors.coded"):
                given = [x.value for x in ast.walk(node.args[1]) if isinstance(x, ast.Constant)]
                parts = {keyword.arg for keyword in node.keywords}
                found |= {code: parts for code in given if isinstance(code, str)}
    return found


def test_every_code_has_a_phrase_that_takes_the_parts_of_the_message():
    raised = codes()
    assert raised.keys() == _PHRASES.keys()
    for code, phrase in _PHRASES.items():
        if isinstance(phrase, str):
            taken = {name for _, name, *_ in Formatter().parse(phrase) if name}
            assert taken <= raised[code], code
        else:
            said = raised[code] - {None} | ({"type", "array"} if None in raised[code] else set())
            assert {*inspect.signature(phrase).parameters} == said, code
