"""Programs as others read, rewrite and run them."""

import inspect
import itertools
from types import SimpleNamespace

import jax as peer
import numpy as np
import pytest
from jax._src.api_util import infer_argnums_and_argnames as peer_infers

import phalanx
import phalanx.numpy as jnp
from phalanx import P, lax
from phalanx.compat import core, operations
from phalanx.compat.api_util import (
    argnums_partial,
    debug_info,
    flatten_fun,
    flatten_fun_nokwargs,
    infer_argnums_and_argnames,
)
from phalanx.compat.extend import linear_util as lu
from phalanx.compat.interpreters import partial_eval
from phalanx.compat.jaxprs import ClosedJaxpr, Jaxpr, dce_jaxpr, eval_jaxpr, make_jaxpr
from tests.releases import OLDER

X = jnp.arange(1.0, 7.0).reshape(2, 3)
MESH = phalanx.make_mesh((1,), ("i",))
CONSTANT = jnp.array([1.0, -2.0, 0.5])


@phalanx.custom_jvp
def cube(x):
    return x**3


cube.defjvp(lambda xs, ts: (cube(xs[0]), 3 * xs[0] ** 2 * ts[0]))
PROGRAMS = [
    lambda x: jnp.sin(x) @ CONSTANT,
    lambda x: phalanx.jit(lambda y: y.sum(0) * CONSTANT)(x),
    lambda x: lax.scan(lambda c, row: (c + row.sum(), c * row), 0.5, x),
    lambda x: lax.cond(x.sum() > 0, jnp.cos, jnp.sin, x),
    lambda x: lax.while_loop(lambda c: c.sum() < 100, lambda c: 2 * c, x),
    lambda x: phalanx.vmap(cube)(x).T.reshape(-1)[::-1],
    lambda x: phalanx.checkpoint(jnp.tanh)(x).astype("bfloat16"),
    lambda x: lax.dynamic_slice(jnp.concatenate([x, x]), (1, 0), (2, 2)),
    lambda x: phalanx.grad(lambda w: lax.scan(lambda c, r: (w * c + r.sum(), None), w, x)[0])(2.0),
    lambda x: lax.while_loop(lambda c: (c * x[0]).sum() < 100, lambda c: c + x[1, 1], x),
    lambda x: phalanx.vmap(lambda y: lax.while_loop(lambda c: c < y[0], lambda c: c + y[1], 0.0))(
        x
    ),
    lambda x: jnp.where(x > 2, x, -x).at[jnp.array([1, 0])].add(x[jnp.array([0, 0])]),
    lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 0), jnp.round(x / 2), lax.round(x / 2)),
    lambda x: jnp.linalg.qr(x)[1].sum() + jnp.linalg.svd(x)[1].sum(),
    lambda x: lax.linalg.triangular_solve(x[:, :2], x, left_side=True, lower=True),
    lambda x: phalanx.shard_map(
        lambda y: 2.0 * y + lax.psum(y, "i"), mesh=MESH, in_specs=P("i"), out_specs=P("i")
    )(x),
    lambda x: phalanx.shard_map(jnp.sin, mesh=MESH, in_specs=P("i"), out_specs=P("i"))(x),
]


def interpreted(jaxpr, consts, *args):
    """As interpreters of the field run a program: equation by equation, by names alone."""
    values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))

    def read(atom):
        return atom.val if isinstance(atom, core.Literal) else values[atom]

    for eqn in jaxpr.eqns:
        params = eqn.primitive.get_bind_params(eqn.params)
        out = eqn.primitive.bind(*map(read, eqn.invars), **params)
        out = out if eqn.primitive.multiple_results else [out]
        values.update(zip(eqn.outvars, out, strict=True))
        assert [v.aval for v in eqn.outvars] == [phalanx.typeof(y) for y in out]
    return list(map(read, jaxpr.outvars))


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_is_read_computes_what_was_traced(program):
    closed = make_jaxpr(program)(X)
    expected = phalanx.tree.leaves(program(X))
    rewritten = closed.jaxpr.replace(eqns=[e.replace() for e in closed.eqns])
    for out in (
        interpreted(closed.jaxpr, closed.consts, X),
        eval_jaxpr(closed.jaxpr, closed.consts, X),
        core.jaxpr_as_fun(closed)(X),
        phalanx.jit(core.jaxpr_as_fun(ClosedJaxpr(rewritten, closed.consts)))(X),
    ):
        for a, b in zip(out, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


def test_programs_tell_of_themselves():
    def shows(x):
        phalanx.debug.print("{}", x)

    closed = make_jaxpr(lambda x: jnp.sin(x) + np.arange(3.0, dtype=np.float32))(X)
    assert closed.pretty_print(use_color=False) == closed.jaxpr.pretty_print() == str(closed)
    assert closed.num_consts == len(closed.consts) == 1
    effects = [phalanx.jit(f).trace(X).effects for f in (jnp.sin, shows)]
    assert [bool(each) for each in effects] == [False, True]


def test_values_that_are_captured_are_constants():
    def gradient(w):
        closed = make_jaxpr(lambda x: (w * x).sum())(X)
        assert len(closed.consts) == 1 and closed.in_avals == [X.aval]
        return eval_jaxpr(closed.jaxpr, closed.consts, X)[0]

    assert phalanx.grad(gradient)(2.0) == X.sum()


def test_operations_are_known_by_identity_and_by_name():
    jitted, cosine = make_jaxpr(lambda x: jnp.cos(phalanx.jit(jnp.sin)(x)))(X).eqns
    assert cosine.primitive is operations.cos_p and jitted.primitive is operations.jit_p
    assert jitted.params["name"] == "sin" and jitted.params["jaxpr"].eqns[0].primitive.name == "sin"
    assert operations.select_n_p is operations.select_n_p
    (squared,) = make_jaxpr(jnp.square)(X).eqns  # interpreters invert it, and no product of x and x
    assert squared.primitive is operations.square_p
    scan = make_jaxpr(PROGRAMS[2])(X).eqns[-1]
    assert scan.primitive is operations.scan_p and isinstance(scan.params["jaxpr"], ClosedJaxpr)


def casting(jax, mesh):
    lax, P = jax.lax, jax.sharding.PartitionSpec

    def f(x, y):
        return lax.psum(x, "i") * x + lax.pmax(y, "i") * x

    return jax.shard_map(f, mesh=mesh, in_specs=(P("i"), P()), out_specs=P("i"))


@pytest.mark.skipif(phalanx.device_count() < 2, reason="needs a mesh of 2")
def test_casts_along_manual_axes_are_equations():
    x, y = np.arange(4, dtype="f4"), np.array([2, 3], "f4")
    given = peer.make_mesh((2,), ("i",), axis_types=(peer.sharding.AxisType.Auto,))
    (theirs,) = peer.make_jaxpr(casting(peer, given))(x, y).eqns
    mesh = phalanx.make_mesh((2,), ("i",))
    (mapped,) = make_jaxpr(casting(phalanx, mesh))(x, y).eqns
    body = mapped.params["jaxpr"]
    names = [e.primitive.name for e in body.eqns]
    assert names == [e.primitive.name for e in theirs.params["jaxpr"].eqns]
    assert body.eqns[0].primitive is operations.psum_invariant_p
    assert body.eqns[0].params["axes"] == body.eqns[1].params["axes"] == ("i",)
    again = phalanx.shard_map(
        lambda *xs: interpreted(body.jaxpr, body.consts, *xs),
        mesh=mesh,
        in_specs=(P("i"), P()),
        out_specs=P("i"),
    )
    np.testing.assert_allclose(again(x, y)[0], casting(phalanx, mesh)(x, y))


def of_loops(jaxpr, consts, *args):
    """As an interpreter that runs loops by itself does."""
    values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))

    def read(atom):
        return atom.val if isinstance(atom, core.Literal) else values[atom]

    def run(closed, *args):
        return of_loops(closed.jaxpr, closed.consts, *args)

    for eqn in jaxpr.eqns:
        xs, p = [*map(read, eqn.invars)], eqn.params
        if eqn.primitive.name == "while":
            asked, own = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
            out = xs[own:]
            while run(p["cond_jaxpr"], *xs[:asked], *out)[0]:
                out = run(p["body_jaxpr"], *xs[asked:own], *out)
        elif eqn.primitive.name == "scan":
            fixed, out, whole = (group.vals for group in p["ft_in"].update(xs).unpack())
            rows = []
            steps = range(p["length"])
            for i in reversed(steps) if p["reverse"] else steps:
                given = run(p["jaxpr"], *fixed, *out, *[x[i] for x in whole])
                out, row = (group.vals for group in p["ft_out"].update(given).unpack())
                rows.append(row)
            rows = rows[::-1] if p["reverse"] else rows
            out = [*out, *[np.stack(ys) for ys in zip(*rows, strict=True)]]
        elif eqn.primitive.name in ("jit", "pjit"):
            out = run(p["jaxpr"], *xs)
        elif eqn.primitive.name == "select_n":
            out = [np.where(xs[0], xs[2], xs[1])]
        else:
            out = eqn.primitive.bind(*xs, **p)
            out = out if eqn.primitive.multiple_results else [out]
        values.update(zip(eqn.outvars, out, strict=True))
    return list(map(read, jaxpr.outvars))


def loops(jax):
    jnp, lax = jax.numpy, jax.lax

    def f(x):
        y = lax.while_loop(lambda c: (c * x[0]).sum() < 50, lambda c: c + x[1, 1], x)
        return lax.scan(lambda c, r: (jnp.where(c > 0, c, r) * y[0], c * r), y[1], x, reverse=True)

    return lambda x: (f(x), jax.grad(lambda x: jnp.sum(lax.scan(step, x[0], x)[0]))(x))


def step(c, row):
    return c * row, None


def test_an_interpreter_may_run_loops_by_itself():
    x = np.arange(1.0, 7.0, dtype="f4").reshape(2, 3)
    ours, theirs = make_jaxpr(loops(phalanx))(x), peer.make_jaxpr(loops(peer))(x)
    expected = peer.tree.leaves(loops(peer)(x))
    for a, b in zip(of_loops(ours.jaxpr, ours.consts, x), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)
    for closed in (ours, theirs):
        (loop,) = [e for e in closed.eqns if e.primitive.name == "while"]
        assert (loop.params["cond_nconsts"], loop.params["body_nconsts"]) == (1, 1)


def over_arrays(jax):
    """Loops over what is known outside of them."""
    jnp, lax = jax.numpy, jax.lax
    a, b = jnp.arange(1.0, 3.0), jnp.arange(1.0, 5.0)

    def f(x):
        y = lax.while_loop(lambda y: y < 8 * a[0], lambda y: y + b[1] * a[0], x)
        return lax.scan(lambda c, row: (c * b[1] + row * a[1], c), y, b)

    return f


def test_loops_take_arrays_as_operands():
    closed = make_jaxpr(over_arrays(phalanx))(2.0)
    expected = over_arrays(peer)(2.0)
    for a, b in zip(of_loops(closed.jaxpr, closed.consts, 2.0), expected, strict=True):
        np.testing.assert_allclose(a, b)
    until, over = [e.params for e in closed.eqns if e.primitive.name in ("while", "scan")]
    assert (until["cond_nconsts"], until["body_nconsts"]) == (1, 2)
    fixed, *_ = over["ft_in"].unpack()
    assert len(fixed) == 2


def test_loops_that_others_rewrote_are_run():
    """With more that each run has than before, as interpreters lift constants."""
    (loop,) = make_jaxpr(lambda x: lax.while_loop(lambda c: c < 9.0, lambda c: c + x, 0.0))(
        2.0
    ).eqns
    body = loop.params["body_jaxpr"].jaxpr
    extra = core.Var(body.invars[0].aval)
    (added,) = body.eqns
    scaled = core.Var(extra.aval)
    twice = core.new_jaxpr_eqn([body.invars[0], extra], [scaled], operations.mul_p, {})
    eqns = [twice, added.replace(invars=[added.invars[0], scaled])]
    longer = body.replace(invars=[extra, *body.invars], eqns=eqns)
    params = {**loop.params, "body_nconsts": 2, "body_jaxpr": ClosedJaxpr(longer)}
    (out,) = loop.primitive.bind(3.0, 2.0, 0.0, **params)
    assert out == 12.0


def test_operations_that_hold_programs_have_no_other_parameters_than_the_fields():
    def of(name, f):
        (eqn,) = [e for e in make_jaxpr(f)(X).eqns if e.primitive.name == name]
        return {*eqn.params}

    def loop(x):
        return lax.while_loop(lambda c: c.sum() < 9, lambda c: c + x, x)

    of_while = {"cond_nconsts", "cond_jaxpr", "body_nconsts", "body_jaxpr"}
    of_scan = {"reverse", "length", "jaxpr", "ft_in", "ft_out", "unroll"}
    assert of("while", loop) == of_while
    assert of("cond", lambda x: lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x)) == {"branches"}
    assert of("scan", lambda x: lax.scan(lambda c, r: (c * r, c), x[0], x)) == of_scan


def test_a_scan_that_others_rewrote_is_run():
    """With a constant that each run has, as a row of it is lifted."""
    from phalanx.compat.private.flattree import nones, pack

    (loop,) = make_jaxpr(lambda x: lax.scan(lambda c, r: (c + r, c), 0.0, x))(jnp.arange(3.0)).eqns
    body = loop.params["jaxpr"].jaxpr
    extra, scaled = (core.Var(body.invars[1].aval) for _ in range(2))
    twice = core.new_jaxpr_eqn([body.invars[1], extra], [scaled], operations.mul_p, {})
    (added,) = [e for e in body.eqns if e.primitive is operations.add_p]
    eqns = [
        twice,
        *[e.replace(invars=[e.invars[0], scaled]) if e is added else e for e in body.eqns],
    ]
    longer = body.replace(invars=[extra, *body.invars], eqns=eqns)
    groups = pack((nones(1), nones(1), nones(1)))
    params = {**loop.params, "ft_in": groups, "jaxpr": ClosedJaxpr(longer)}
    total, before = loop.primitive.bind(10.0, 0.0, jnp.arange(3.0), **params)
    assert total == 30.0 and before.tolist() == [0.0, 0.0, 10.0]


def test_a_mapped_function_says_by_specs_what_positions_see():
    (mapped,) = make_jaxpr(PROGRAMS[-1])(X).eqns
    assert mapped.primitive.name == "shard_map" and mapped.params["mesh"] == MESH
    said = [mapped.params[k] for k in ("in_specs", "out_specs", "manual_axes", "check_vma")]
    assert said == [(P("i"),), (P("i"),), {"i"}, True]
    assert [e.primitive.name for e in mapped.params["jaxpr"].eqns] == ["sin"]


@pytest.mark.parametrize(
    "function, read",
    [
        (lambda lax, x: lax.cumsum(x, 1), "axis reverse"),
        (lambda lax, x: lax.pad(x, x[0, 0], [(1, 0, 1), (0, 2, 0)]), "padding_config"),
        (lambda lax, x: lax.sort(x, is_stable=False), "dimension num_keys is_stable"),
        (
            lambda lax, x: lax.dot(x, x.T, preferred_element_type="float32"),
            "preferred_element_type",
        ),
        (
            lambda lax, x: lax.reduce_window(x, 0.0, lax.add, (1, 2), (2, 1), "SAME"),
            "window_dimensions window_strides",
        ),
        (
            lambda lax, x: lax.conv(x[None, None], x[None, None], (1, 2), "SAME"),
            "window_strides feature_group_count",
        ),
        (lambda lax, x: lax.top_k(x, 2), "k" if OLDER else "k is_stable"),
        (lambda lax, x: lax.argmax(x, 1, np.int32), "axes index_dtype"),
        (lambda lax, x: lax.select(x > 0, x, 2 * x), ""),
        (lambda lax, x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), "rounding_method"),
        (lambda lax, x: lax.exp(x), "accuracy"),
        (
            lambda lax, x: lax.linalg.qr(x, full_matrices=False),
            "full_matrices",
        ),
        (
            lambda lax, x: lax.gather(
                x,
                np.array([[1]], "i4"),
                lax.GatherDimensionNumbers((1,), (0,), (0,)),
                (1, 3),
                mode="clip",
            ),
            "dimension_numbers slice_sizes mode fill_value indices_are_sorted unique_indices",
        ),
        (
            lambda lax, x: lax.scatter(
                x, np.array([[1]], "i4"), x[:1], lax.ScatterDimensionNumbers((1,), (0,), (0,))
            ),
            "dimension_numbers mode update_consts indices_are_sorted unique_indices",
        ),
    ],
)
def test_parameters_that_both_have_are_read_by_one_name(function, read):
    def last(jax):
        return jax.make_jaxpr(lambda x: function(jax.lax, x))(np.ones((2, 3), "f4")).eqns[-1]

    ours, theirs = last(SimpleNamespace(make_jaxpr=make_jaxpr, lax=lax)), last(peer)
    assert ours.primitive.name == theirs.primitive.name
    for name in read.split():
        # of enumerations and of records their names and what they hold
        said, expected = (str(x.params[name]).rpartition(".")[2] for x in (ours, theirs))
        assert said == expected


def test_a_compiled_function_within_another_donates_nothing():
    inner = phalanx.jit(lambda x, y: (x + y, x, y), donate_argnums=0)
    jaxpr = make_jaxpr(lambda x: inner(x, 2.0))(1.0)
    said = jaxpr.eqns[-1].params
    assert said["donated_invars"] == (False, False)
    assert said["in_shardings"] == (None, None) and said["out_shardings"] == (None,) * 3
    assert eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, 1.0) == [3.0, 1.0, 2.0]


def test_what_outputs_do_not_need_is_left_out():
    jaxpr = make_jaxpr(lambda x, y: (jnp.sin(x), jnp.cos(y) + x))(X, X).jaxpr
    left, used = dce_jaxpr(jaxpr, [True, False])
    assert used == [True, False] and [e.primitive.name for e in left.eqns] == ["sin"]
    assert dce_jaxpr(jaxpr, [True, False], instantiate=True)[1] == [True, True]


def over_a_mesh(f):
    return phalanx.shard_map(f, mesh=MESH, in_specs=P("i"), out_specs=P("i"))


@pytest.mark.parametrize("whole", [phalanx.jit, phalanx.checkpoint, over_a_mesh])
def test_what_outputs_do_not_need_is_left_out_of_functions_that_are_called(whole):
    shift = np.arange(3, dtype=np.float32)
    f = whole(lambda x, y: (jnp.sin(x), phalanx.jit(jnp.cos)(y) + x, jnp.exp(y) + shift))
    jaxpr = make_jaxpr(f)(X, X)
    for wanted in itertools.product([True, False], repeat=3):
        left, used = dce_jaxpr(jaxpr.jaxpr, wanted)
        assert used == [wanted[0] or wanted[1], wanted[1] or wanted[2]]
        inside = [e.primitive.name for e in left.eqns[0].params["jaxpr"].eqns] if left.eqns else []
        assert [n in inside for n in ("sin", "exp")] == [wanted[0], wanted[2]]
        given = eval_jaxpr(left, jaxpr.consts, *itertools.compress([X, X], used))
        for y, z in zip(given, itertools.compress(f(X, X), wanted), strict=True):
            np.testing.assert_array_equal(y, z)


def test_a_program_made_by_hand():
    x, y = core.Var(X.aval), core.Var(X.aval)
    eqn = core.new_jaxpr_eqn([x], [y], operations.sin_p, {})
    assert jnp.array_equal(eval_jaxpr(Jaxpr([], [x], [y], [eqn]), [], X)[0], jnp.sin(X))


def test_stages_around_functions():
    @lu.transformation
    def doubled(by, *args):
        out = yield [by * a for a in args], {}
        yield [2 * y for y in out]

    @lu.transformation_with_aux2
    def counting(f, store, *args):
        store.store(len(args))
        return f(*args)

    fun, count = counting(doubled(lu.wrap_init(lambda *xs: [*xs]), 10))
    with pytest.raises(lu.StoreException):
        count()
    assert fun.call_wrapped(1, 2) == [20, 40] and count() == 2


def test_flat_functions():
    args, kwargs = ({"a": 1.0}, (2.0, 3.0)), {"k": 4.0}
    leaves, tree = phalanx.tree.flatten((args, kwargs))
    flat, out_tree = flatten_fun(lu.wrap_init(lambda d, p, k: {"sum": d["a"] + p[1] + k}), tree)
    assert flat.call_wrapped(*leaves) == [8.0]
    assert out_tree() == phalanx.tree.structure({"sum": 0})
    leaves, tree = phalanx.tree.flatten(args)
    flat, _ = flatten_fun_nokwargs(lu.wrap_init(lambda d, p: (p, d)), tree)
    assert flat.call_wrapped(*leaves) == [2.0, 3.0, 1.0]
    part, moving = argnums_partial(lu.wrap_init(lambda a, b, c: (a, b, c)), (2,), (1, 2, 3))
    assert moving == [3] and part.call_wrapped(9) == (1, 2, 9)
    assert debug_info("jit", flat, args, {}).arg_names[0] == "[0][0]['a']"


def test_what_is_known_is_computed_and_the_rest_is_a_program():
    fun = lu.wrap_init(lambda x, y: [jnp.sin(x), x + y, 2 * y])
    values = [partial_eval.PartialVal.known(X), partial_eval.PartialVal.unknown(X.aval)]
    jaxpr, out, consts = partial_eval.trace_to_jaxpr_nounits(fun, values, False)
    assert [p.is_known() for p in out] == [True, False, False]
    assert jnp.array_equal(out[0].get_known(), jnp.sin(X))
    np.testing.assert_array_equal(eval_jaxpr(jaxpr, consts, X)[0], 2 * X)
    jaxpr, avals, consts = partial_eval.trace_to_jaxpr_dynamic(fun, [X.aval, X.aval])
    assert avals == [X.aval] * 3 and len(jaxpr.eqns) == 3


def test_traces_are_told_apart():
    outside = core.get_opaque_trace_state(convention="any")
    assert outside == core.get_opaque_trace_state() and core.trace_state_clean()

    def inside(x):
        assert core.get_opaque_trace_state() != outside and not core.trace_state_clean()
        return x

    phalanx.jit(inside)(1.0)


def test_equations_say_in_which_scopes_of_their_program_they_are():
    def f(x):
        with phalanx.named_scope("outer"):
            with phalanx.named_scope("inner"):
                x = jnp.sin(x)
            return phalanx.jit(phalanx.named_call(jnp.cos, name="called"))(x)

    sin, call = make_jaxpr(f)(X).eqns
    (cos,) = call.params["jaxpr"].eqns
    assert [str(e.source_info.name_stack) for e in (sin, call, cos)] == [
        "outer/inner",
        "outer",
        "called",
    ]
    assert "test_jaxprs.py" in str(sin.source_info)


@pytest.mark.parametrize(
    "argnums, argnames",
    [(None, None), (0, None), (-1, None), ((0, 3), None), (None, "b"), (None, ("c", "a"))],
)
def test_positions_and_names_of_arguments_are_completed_as_under_jax(argnums, argnames):
    def f(x, /, a, b=0, *, c=1):
        return x

    given = inspect.signature(f), argnums, argnames
    assert infer_argnums_and_argnames(*given) == peer_infers(*given)


def uses(x, a, b, c):
    """At several depths, each in another order."""
    y = lax.cond(x > 0, lambda y: y + b[0], lambda y: y - c[0], x)
    y, _ = lax.scan(lambda carry, row: (carry * c[0] + row * b[0] + a[0], None), y, a)
    y = lax.while_loop(lambda y: y < 8 * c[0], lambda y: y + c[0] * b[0], y)
    return phalanx.jit(lambda y: y * a[0])(y), c


@pytest.mark.parametrize("known", ["", "a", "b", "c", "ab", "ac", "bc", "abc"])
def test_constants_are_in_the_order_of_their_use_known_or_traced(known):
    """Those of loops, branches and calls, too: so a library may fill in others."""
    values = {name: jnp.arange(1.0, size) for name, size in zip("abc", (3, 4, 5), strict=True)}

    def read(traced):
        closed = make_jaxpr(lambda x: uses(x, **{**values, **traced}))(2.0)
        assert [len(c) for c in closed.consts] == [4, 3, 2]  # c first: in a branch, if x <= 0
        return interpreted(closed.jaxpr, closed.consts, 2.0)

    traced = {name: value for name, value in values.items() if name not in known}
    y, c = phalanx.jit(read)(traced)
    assert y == 8.0  # from 2 to 3, then to 5 and 8, which is where the loop ends
    np.testing.assert_array_equal(c, values["c"])
