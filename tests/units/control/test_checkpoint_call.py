"""checkpoint: the same values and derivatives, and only what the policy grants is stored."""

import functools
import re
from collections import Counter
from functools import partial

import numpy as np
import pytest

import phalanx as px
import phalanx.numpy as jnp
from phalanx import lax
from phalanx.ad_checkpoint import checkpoint_name, print_saved_residuals, saved_residuals
from tests.compare import SUMS, close

near = partial(close, within=SUMS)

P = px.checkpoint_policies
RNG = np.random.default_rng(0)
W = RNG.normal(size=(3, 3)).astype("float32")
X = RNG.normal(size=3).astype("float32")
ROWS = RNG.normal(size=(5, 3, 3)).astype("float32")


def layer(w, x):
    hidden = checkpoint_name(jnp.tanh(x @ w), "hidden")
    return px.jit(lambda a: jnp.sin(a @ w))(hidden)


def stored(f, *args):
    """How often each kind of value is stored, but for the arguments."""
    origins = [origin for _, origin in saved_residuals(f, *args)]
    return Counter(re.sub(r"output of | from.*", "", o) for o in origins if "argument" not in o)


def slope(f):
    return px.jit(px.grad(lambda *args: jnp.sum(f(*args) ** 2), (0, 1)))


def products(f, *args):
    return px.jit(f).lower(*args).as_text().count("stablehlo.dot_general")


OFFLOADED = P.save_and_offload_only_these_names(
    names_which_can_be_saved=["other"],
    names_which_can_be_offloaded=["hidden"],
    offload_src="device",
    offload_dst="pinned_host",
)


# ---- what is stored -----------------------------------------------------------------------------

GRANTED = {
    "none": (None, {}),
    "nothing_saveable": (P.nothing_saveable, {}),
    "dots_saveable": (P.dots_saveable, {"dot_general": 2}),
    "dots_without_batch": (P.dots_with_no_batch_dims_saveable, {"dot_general": 2}),
    "only_names": (P.save_only_these_names("hidden", "other"), {"named 'hidden'": 1}),
    "only_other_names": (P.save_only_these_names("other"), {}),
    "all_names": (P.save_any_names_but_these(), {"named 'hidden'": 1}),
    "no_names": (P.save_any_names_but_these("hidden"), {}),
    "offloaded_names": (OFFLOADED, {"device_put": 1}),
    "offloaded_products": (
        P.offload_dot_with_no_batch_dims("device", "pinned_host"),
        {"device_put": 2},
    ),
    "one_of_two": (
        P.save_from_both_policies(
            P.save_only_these_names("hidden"), lambda prim, *_, **__: str(prim) == "cos"
        ),
        {"named 'hidden'": 1, "cos": 1},
    ),
}


@pytest.mark.parametrize("which", GRANTED)
def test_only_what_the_policy_grants_is_stored(which):
    policy, wanted = GRANTED[which]
    f = px.checkpoint(layer, policy=policy)
    assert stored(f, W, X) == wanted
    assert stored(px.jit(f), W, X) == wanted
    near(slope(f)(W, X), slope(layer)(W, X))


@pytest.mark.parametrize("scanned", [False, True])
def test_what_is_stored_is_rounded_so_that_accelerators_make_the_rest_of_it(scanned):
    """Their compilers stored what is made of it as well: 12 arrays here, and not 8."""
    block = px.checkpoint(
        lambda x, w: jnp.cos(jnp.tanh(checkpoint_name(jnp.sin(x), "hidden")) * w),
        policy=P.save_only_these_names("hidden"),
    )

    def loss(ws, x):
        if scanned:
            return lax.scan(lambda x, w: (block(x, w), None), x, ws)[0].sum()
        for i in range(6):
            x = block(x, ws[i])
        return x.sum()

    for dtype, format in (("float32", "e8m23"), ("bfloat16", "e8m7")):
        ws, x = jnp.ones((6, 1), dtype), jnp.ones((4, 4), dtype)
        lowered = px.jit(px.grad(loss)).trace(ws, x).lower(lowering_platforms=("tpu",)).as_text()
        rounded = re.search(
            r"(%\w+) = stablehlo.sine .*\s+"
            rf"(%\w+) = stablehlo.reduce_precision \1, format = {format} .*\s+"
            r"%\w+ = stablehlo.tanh \2 ",
            lowered,
        )
        assert rounded


def test_all_but_names_stores_as_much_as_without_checkpoint():
    plain = stored(layer, W, X)
    assert stored(px.checkpoint(layer, policy=P.everything_saveable), W, X) == plain
    but = stored(px.checkpoint(layer, policy=P.save_anything_except_these_names("hidden")), W, X)
    assert "named 'hidden'" in plain and "named 'hidden'" not in but
    assert sum(but.values()) == sum(plain.values())


def test_what_is_stored_is_not_computed_again():
    plain = products(slope(layer), W, X)
    for policy, more in (P.everything_saveable, 0), (P.dots_saveable, 0), (None, 2):
        assert products(slope(px.checkpoint(layer, policy=policy)), W, X) == plain + more


def test_products_with_batch_dimensions_are_no_products_with_weights():
    def attend(w, x):
        return jnp.sin(jnp.einsum("bij,bjk->bik", x @ w, x))

    f = px.checkpoint(attend, policy=P.dots_with_no_batch_dims_saveable)
    assert stored(f, W, ROWS) == {"dot_general": 1}
    assert stored(px.checkpoint(attend, policy=P.dots_saveable), W, ROWS) == {"dot_general": 2}


def test_values_wait_in_the_memory_of_the_host():
    """Each is brought there once and back once, in loops as well; eagerly it lies there."""

    def layers(f):
        return lambda ws, x: lax.scan(lambda x, w: (f(w, x), None), x, ws)[0]

    one = px.checkpoint(layer, policy=OFFLOADED)
    whole = px.checkpoint(layers(layer), policy=OFFLOADED)
    for f, args in ((one, (W, X)), (layers(one), (ROWS, X)), (whole, (ROWS, X))):
        text = slope(f).trace(*args).lower(lowering_platforms=("tpu",)).as_text()
        moves = re.findall(r'_xla_buffer_placement = "(\w+)"', text)
        assert moves == ["pinned_host", "device"]
        plain = layer if f is one else layers(layer)
        near(slope(f)(*args), slope(plain)(*args))
    _, pull = px.vjp(one, W, X)
    assert "pinned_host" in {x.sharding.memory_kind for x in px.tree.leaves(pull)}
    near(pull(jnp.ones(3)), px.vjp(layer, W, X)[1](jnp.ones(3)))
    lanes = px.vmap(slope(one), (None, 0))(W, ROWS[:, 0])
    near(lanes, px.vmap(slope(layer), (None, 0))(W, ROWS[:, 0]))


def test_a_policy_sees_operations_of_the_derivative_with_types_and_parameters():
    seen = {}

    def policy(prim, *types, **params):
        seen[prim.name] = [t.shape for t in types], params
        return False

    px.make_program(slope(px.checkpoint(layer, policy=policy)))(W, X)
    assert seen["dot_general"] == ([(3,), (3, 3)], seen["dot_general"][1])
    assert seen["dot_general"][1]["contract"] == ((0,), (0,))
    assert "cos" in seen and seen["name"][1] == {"name": "hidden"}


def test_policies_look_into_scans_and_mapped_functions():
    def scanned(w, x):
        return lax.scan(lambda c, r: (jnp.tanh(r @ c @ w), None), x, ROWS)[0]

    def mapped(w, x):
        return jnp.sin(px.pmap(lambda r, w: jnp.tanh(r @ w), in_axes=(0, None))(ROWS, w) @ x)

    for f, shape in (scanned, (5, 3)), (mapped, (5, 3, 3)):
        g = px.checkpoint(f, policy=P.dots_saveable)
        found = [t.shape for t, origin in saved_residuals(g, W, X) if "argument" not in origin]
        assert shape in found and stored(g, W, X).keys() <= {"dot_general", "a constant"}
        near(slope(g)(W, X), slope(f)(W, X))


# ---- memory -------------------------------------------------------------------------------------


def temporaries(f, *args):
    return px.jit(f).lower(*args).compile().memory_analysis().temp_size_in_bytes


DEEP = RNG.normal(size=(24, 16, 16)).astype("float32") / 4
WIDE = RNG.normal(size=(64, 16)).astype("float32")


def block(x, w):
    return x + jnp.tanh(jnp.sin(jnp.exp(jnp.tanh(x @ w))) @ w.T)


def deep(block, scanned=True):
    def loss(ws, x):
        if scanned:
            return jnp.sum(lax.scan(lambda c, w: (block(c, w), None), x, ws)[0] ** 2)
        for i in range(12):
            x = block(x, ws[i])
        return jnp.sum(x**2)

    return px.grad(loss)


def test_memory_is_that_of_the_carry():
    carries = WIDE.nbytes * len(DEEP)
    plain, small = (temporaries(deep(f), DEEP, WIDE) for f in (block, px.checkpoint(block)))
    assert plain > 3 * carries and small < 2 * carries


def test_a_scan_stores_rows_of_what_was_granted_alone():
    program = px.make_program(deep(px.checkpoint(block, policy=P.dots_saveable)))(DEEP, WIDE)
    first = next(e for e in program.equations if e.prim.name == "scan")
    rows = [v.type.shape for v in first.outputs[1:]]
    # the carry, and both products; the weights are rows already
    assert rows == [(24, 64, 16)] * 3


@pytest.mark.parametrize("prevent_cse", [True, False])
def test_a_barrier_keeps_the_compiler_from_storing_after_all(prevent_cse):
    f = px.checkpoint(block, prevent_cse=prevent_cse)
    text = px.jit(deep(f, scanned=False)).lower(DEEP, WIDE).as_text()
    assert ("optimization_barrier" in text) == prevent_cse
    assert "optimization_barrier" not in px.jit(f).lower(WIDE, DEEP[0]).as_text()


def test_forward_mode_computes_nothing_again():
    f = px.checkpoint(lambda w: layer(w, X))
    forward = lambda f: lambda w: px.jvp(f, (w,), (w,))  # noqa: E731
    assert products(forward(f), W) == products(forward(lambda w: layer(w, X)), W)


# ---- with everything else -----------------------------------------------------------------------


def test_without_jit_outside():
    total = lambda f: lambda w, x: jnp.sum(f(w, x) ** 2)  # noqa: E731
    g = px.checkpoint(layer, policy=P.save_only_these_names("hidden"))
    near(px.grad(total(g), (0, 1))(W, X), slope(layer)(W, X))
    near(px.jvp(total(g), (W, X), (W, X)), px.jvp(total(px.jit(layer)), (W, X), (W, X)))


# ---- how it is called ---------------------------------------------------------------------------


def test_decorators_static_arguments_keywords_and_trees():
    @px.checkpoint
    def plain(tree, *, scale):
        return {"y": jnp.sin(tree["x"]) * scale}

    @functools.partial(px.remat, policy=P.dots_saveable, static_argnums=(1,))
    def static(x, kind):
        """Documented."""
        return jnp.sin(x) if kind == "sin" else jnp.cos(x)

    near(px.grad(lambda x: plain({"x": x}, scale=2.0)["y"])(0.0), 2.0)
    near(px.grad(lambda x: static(x, "sin"))(0.0), 1.0)
    near(px.grad(lambda x: static(x, "cos"))(0.0), 0.0)
    assert static.__name__ == "static" and static.__doc__ == "Documented."

    class Model:
        @px.checkpoint
        def loss(self, x):
            return jnp.sin(x) * 3.0

    px.tree_util.register_static(Model)
    near(px.grad(Model().loss)(0.0), 3.0)


def test_traced_once_for_each_type_of_arguments():
    seen = []

    def f(x):
        seen.append(x)
        return jnp.sin(x)

    for _ in range(3):
        px.grad(px.checkpoint(f))(1.0)
        px.checkpoint(f)(2.0)
    assert len(seen) == 1


def test_without_jit_python_sees_values():
    with px.disable_jit():
        near(px.grad(px.checkpoint(lambda x: x**2 if x > 0 else -x))(3.0), 6.0)


def test_names_are_given_to_all_leaves():
    found = checkpoint_name({"a": X, "b": 1.0}, "pair")
    near(found, {"a": X, "b": 1.0})
    f = px.checkpoint(
        lambda x: jnp.sin(sum(checkpoint_name((jnp.exp(x), jnp.cos(x)), "pair"))),
        policy=P.save_only_these_names("pair"),
    )
    assert stored(f, 1.0) == {"named 'pair'": 2}


def test_saved_residuals_are_printed_with_the_users_lines(capsys):
    def loss(w, x):
        return jnp.sum(jnp.sin(x @ w))

    print_saved_residuals(px.checkpoint(loss, policy=P.dots_saveable), W, x=X)
    line = loss.__code__.co_firstlineno + 1
    assert capsys.readouterr().out.splitlines() == [
        "f32[3,3] from the argument w",
        "f32[3] from the argument x",
        f"f32[3] output of dot_general from test_checkpoint_call.py:{line} (loss)",
    ]


def test_equal_policies_are_one():
    assert P.save_only_these_names("a", "b") == P.save_only_these_names("b", "a")
    assert P.save_only_these_names("a") != P.save_any_names_but_these("a")
    both = P.save_from_both_policies(P.dots_saveable, P.save_only_these_names("a"))
    assert both == P.save_from_both_policies(P.dots_saveable, P.save_only_these_names("a"))


# ---- with rules of the user's, and with effects -------------------------------------------------


@px.custom_vjp
def doubling(x):
    return jnp.sin(x)


doubling.defvjp(lambda x: (jnp.sin(x), jnp.cos(x)), lambda cosine, ct: (2 * ct * cosine,))


def test_rules_of_the_users_are_kept_and_what_they_keep_is_computed_again():
    total = px.checkpoint(lambda x: jnp.sum(jnp.exp(doubling(x))))
    assert not stored(total, X)
    near(px.jit(px.grad(total))(X), 2 * np.cos(X) * np.exp(np.sin(X)))


def test_what_is_computed_again_has_no_effects_again(capfd):
    def part(x):
        px.debug.print("x is {}", x)
        return jnp.sin(jnp.sin(x))

    px.jit(px.grad(px.checkpoint(part)))(np.float32(2)).block_until_ready()
    px.effects_barrier()
    assert capfd.readouterr().out.count("x is 2") == 1


@pytest.mark.parametrize("around", [lambda f: f, px.jit, lambda f: px.vmap(f, in_axes=(0, None))])
def test_static_arguments_that_cannot_be_hashed(around):
    scales = {"of": [2.0]}

    def scaled(w):
        return px.checkpoint(lambda w, by: jnp.sin(w) * by["of"][0], static_argnums=1)(w, scales)

    def slope(w, _):
        return px.vmap(px.grad(scaled))(w) if w.ndim else px.grad(scaled)(w)

    for factor in (2.0, 3.0):
        scales["of"][0] = factor  # what was traced before is not taken for it
        near(px.grad(lambda w: scaled(w).sum())(X), factor * np.cos(X))
    near(around(slope)(X, None), 3 * np.cos(X))
