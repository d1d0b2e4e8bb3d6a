"""What JAX says where we say the same otherwise: tests and handlers look for such phrases."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable


def phrased(text: str) -> str:
    """``text``, which tells at its end what JAX says of it, if programs are known to look for that.

    >>> phrased("set_mesh: the axes ('x',) of Mesh('x': 8) are of type Manual, at line 1")
    "set_mesh: the axes ('x',) of Mesh('x': 8) are of type Manual, at line 1 (in JAX's words: \
set_mesh: the mesh contains manual axes)"
    """
    if _SAID in text:  # it crossed a boundary before
        return text
    found = ((match, phrase) for pattern, phrase in _PHRASES if (match := pattern.search(text)))
    for match, phrase in found:
        said = match.expand(phrase) if isinstance(phrase, str) else phrase(match)
        return f"{text}{_SAID}{said})"
    return text


_SAID = " (in JAX's words: "


def _over_no_mesh(found: re.Match[str]) -> str:
    who, asks = found.groups()
    if who == "device_put":
        return "Please set a mesh via `jax.set_mesh` if a PartitionSpec is passed to device_put"
    if asks or who == "with_sharding_constraint":
        return f"{who} requires a non-empty mesh in context"
    return f"Using PartitionSpec when {who} is not under a mesh context is not allowed"


def _unclear(found: re.Match[str]) -> str:
    """What is said of an operation whose operands do not tell how the result lies."""
    called, within, problem = found.groups()
    name = within or called
    if name in _OF_OPERATIONS:
        return _OF_OPERATIONS[name]
    if problem.startswith("the sum is over"):
        return "Contracting dimensions are sharded"
    if problem.startswith("both would cut"):
        return f"{name} operation with these operands produces an illegally sharded result"
    return f"{name} got incompatible shardings for broadcasting"


_OF_OPERATIONS = {
    "pad": "padding on sharded dims is not supported",
    "reshape": "This reshape is not supported",
    "select": "select cases must have the same shardings",
    "select_n": "select cases must have the same shardings",
    "slice": "slicing on sharded dims is not supported",
}


def _unlike_sums(found: re.Match[str]) -> str:
    name, both = found.groups()
    if both:
        return f"lhs and rhs to `{name}` must be unreduced along the same mesh axes"
    return "lhs is unreduced while rhs is not"


def _apart(found: re.Match[str]) -> str:
    name, one, its, other, others = found.groups()
    return (
        f"Received incompatible devices for jitted computation. Got argument {one} of {name} with "
        f"shape {its} and argument {other} of {name} with shape {others}"
    )


def _result_apart(found: re.Match[str]) -> str:
    ids = ", ".join(re.findall(r":(\d+)", found[1]))
    return (
        "Received incompatible devices for jitted computation. Got explicit output sharding with "
        f"device ids [{ids}] and sharding_constraint inside jit with device ids of others"
    )


def _not_the_same(found: re.Match[str]) -> str:
    axes, spec, varying = found.groups()
    missing = [axis for axis in _WORDS.findall(varying) if axis in _WORDS.findall(axes)]
    named = [axis for axis in _WORDS.findall(varying) if axis not in missing]
    return (
        f"out_specs require replication which can't be statically inferred: out_specs is {spec} "
        f"which implies that the corresponding output value is only varying across mesh axes "
        f"{_braced(named)} and not {_braced(missing)}, but it was inferred to be possibly varying "
        f"over {_braced(_WORDS.findall(varying))}"
    )


_WORDS = re.compile(r"\w+")


def _braced(names: Iterable[str]) -> str:
    return f"{{{','.join(names)}}}"


def _needed(found: re.Match[str]) -> str:
    type, what = found.groups()
    value = f"traced array with shape {type}"
    if what.startswith("a Python bool"):
        return f"Attempted boolean conversion of {value}."
    if what.startswith("an integer"):
        return f"The __index__() method was called on {value}"
    if what.startswith("a NumPy array"):
        return f"The numpy.ndarray conversion method __array__() was called on {value}"
    return f"Abstract tracer value encountered where concrete value is expected: {value}"


_PHRASES: list[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]] = [
    (
        re.compile(r"^([\w.]+)(?:\(.*\))?(?:: ((?:in|out)_shardings))?: P\(.*\) stands alone"),
        _over_no_mesh,
    ),
    (
        re.compile(r"the mesh has no axis '(\w+)' of P\((.*?),?\), at .*? The axes are (.*)\.$"),
        r"Resource axis: \1 of P(\2,) is not found in mesh: (\3).",
    ),
    (
        re.compile(r"(\w+_shardings): axis '(\w+)' occurs more than once in (P\(.*?\)), at "),
        r"A single \1 specification can map every mesh axis to at most one positional dimension, "
        r"but \3 has duplicate entries for `\2`",
    ),
    (
        re.compile(r"(\w+_shardings) takes shardings, .* got '?(.*?)'?; "),
        r"\1 leaf specifications are expected to be PartitionSpec instances or None, but got \2",
    ),
    (
        re.compile(r"a value inside is to lie as (\w+)\(.*, which is over none"),
        r"If you are using spmd_axis_name parameter of jax.vmap, please make sure to run your "
        r"jitted function inside the mesh context manager. Got \1",
    ),
    (
        re.compile(r"spmd_axis_name deals the examples out over (.*), and the arguments"),
        r"Only one of spmd_axis_name or arrays sharded on `Explicit` mesh axis type is allowed, "
        r"got spmd_axis_name=\1",
    ),
    (
        re.compile(r"^(\w+): operands vary along different axes, .*, and the option auto_pcast"),
        r"Primitive \1 requires varying manual axes to match",
    ),
    (
        re.compile("spmd_axis_name cannot appear in its specs"),
        "vmap spmd_axis_name cannot appear in shard_map in_specs or out_specs",
    ),
    (
        re.compile(
            r": (?:in_shardings|(out_shardings)) of .*: (P\(.*\)) has (\d+) entr.* has (\d+) dim"
        ),
        lambda found: (
            f"One of pjit {'outputs' if found[1] else 'arguments'} has {found[2]}, which is for "
            f"values of rank at least {found[3]}, but was applied to a value of rank {found[4]}"
        ),
    ),
    (
        re.compile(r"^(\w+): NamedSharding\(.*(P\(.*\))\) is about (\d+) dim.* has (\d+),"),
        r"One of \1 arguments has \2, which is for values of rank at least \3, but was applied to "
        r"a value of rank \4",
    ),
    (
        re.compile(r"^(\w+)(?:, in (\w+))?: how the result is to lie .*?, at [^:]*:\d+[^:]*: (.*)"),
        _unclear,
    ),
    (
        re.compile(
            r"^(.+?): Received incompatible .* and (?:operand )?(.+?), (\w+\[.*?\]), lies .*; "
            r"(?:operand )?(.+?), (\w+\[.*?\]), lies "
        ),
        _apart,
    ),
    (
        re.compile(r"out_shardings puts a result .*?(on .*?); with_sharding_constraint at "),
        _result_apart,
    ),
    (
        re.compile(r": (\S+) is ShapeDtypeStruct\(shape=\((.*?),?\), dtype=(\w+).* not an array "),
        lambda found: (
            f"Argument '{found[1]}' of shape {found[3]}[{found[2].replace(' ', '')}] of type "
            "ShapeDtypeStruct is not a valid JAX type."
        ),
    ),
    (
        re.compile("the function returned ShapeDtypeStruct"),
        "A ShapeDtypeStruct does not have a value",
    ),
    (re.compile("got Mesh and NoneType"), "Unexpected None"),
    (
        re.compile("give a device or a backend, not both"),
        "can't specify both a device and a backend for jit",
    ),
    (
        re.compile("says where all of it lies, and so do in_shardings"),
        "If backend or device is specified on jit, then in_shardings should not be specified. "
        "If backend or device is specified on jit, then out_shardings should not be specified.",
    ),
    (
        re.compile("in_shardings are those of arguments by position"),
        "pjit does not support kwargs when in_shardings is specified.",
    ),
    (
        re.compile("rows of xs are taken one after the other"),
        "0th dimension of all xs should be replicated",
    ),
    (
        re.compile("^(?:scan|while_loop|fori_loop): the carry must keep its types"),
        "scan: carry input and carry output must have equal types",
    ),
    (
        re.compile("mapped axes must lie alike"),
        "Mapped away dimension of inputs passed to vmap should be sharded the same",
    ),
    (
        re.compile(r"^(\w+): .* is unreduced: .* is not; operands are \S+( and \S*\{\S*U:)?"),
        _unlike_sums,
    ),
    (
        re.compile(r"^(\w+): .* is unreduced: .* cannot be done to its parts"),
        r"unreduced rule for \1 is not implemented",
    ),
    (
        re.compile("^(?:\\w+): out_sharding leaves the sum over"),
        "unreduced axes should be equal to the contracting specs, and lhs and rhs contracting dims "
        "should be sharded identically",
    ),
    (
        re.compile(r"^(?:pcast|pvary): unbound axis name: (\S+) \(in scope"),
        r"pvary should be called under jax.shard_map. Found an unbound axis name: \1",
    ),
    (
        re.compile(r"^(\w+): unbound axis name: (\S+) \(in scope"),
        r"Found an unbound axis name: \2. To fix this, please call \1 under `jax.shard_map`",
    ),
    (
        re.compile(
            r"s say that .* is the same along ax[ei]s (.*), (P\(.*\)), at .*varies along (.*?)[:.]"
        ),
        _not_the_same,
    ),
    (
        re.compile(r"^shard_map\(.*\): there is no mesh, at"),
        "The context mesh cannot be empty",
    ),
    (re.compile(r"^shard_map\(.*\): mesh= is empty, at"), "shard_map requires a non-empty mesh"),
    (
        re.compile(r"^shard_map\((.+?)\): (?:in|out)_specs has .*, which has length \d+, for "),
        r"shard_map applied to the function '\1'",
    ),
    (
        re.compile("s say that .* is (?:un)?reduced along"),
        "out_specs passed to shard_map are of another kind than the result",
    ),
    (
        re.compile("^pcast: .* can be told as"),
        "jax.lax.pcast can only accept axis_name which are all of one kind",
    ),
    (
        re.compile(r"names the manual axis '(\w+)', along which"),
        r"the sharding contains a manual axes '\1' of mesh",
    ),
    (
        re.compile("cuts what is mapped over, .* and shard_map uses it itself"),
        "jax.shard_map requires axis_names to be a subset of those left",
    ),
    (re.compile(r"^(set_mesh): .* are of type Manual"), r"\1: the mesh contains manual axes"),
    (
        re.compile(r"^custom_vjp\(.*\): forward mode .* needs a rule for tangents, at"),
        "can't apply forward-mode autodiff (jvp) to a custom_vjp function.",
    ),
    (re.compile(r"^value ~?(\S+) .*?is needed as (.*?) at "), _needed),
    (
        re.compile(r"the result depends on the elements of value ~?(\S+) "),
        r"Abstract tracer value encountered where concrete value is expected: "
        r"traced array with shape \1",
    ),
    (
        re.compile(r"^a mask, value (\S+) .*, is used as an index"),
        r"Array boolean indices must be concrete; got \1",
    ),
]
