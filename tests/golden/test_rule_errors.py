"""What mistakes with custom_jvp and custom_vjp get, word for word."""

import numpy as np

import phalanx
import phalanx.numpy as jnp
from phalanx import lax
from tests.golden.mistakes import Mistakes

X = np.ones(3, np.float32)
PARAMS = {"w": X, "b": (1.0, 2.0)}
mistake = Mistakes(__file__)


def predict(params, x):
    return {"out": params["w"] * x, "norm": jnp.sum(x)}


def differentiate(f):
    return phalanx.grad(lambda params, x: jnp.sum(f(params, x)["out"]), (0, 1))(PARAMS, X)


def with_jvp(rule):
    f = phalanx.custom_jvp(predict)
    f.defjvp(rule)
    return f


def with_vjp(forward, backward):
    f = phalanx.custom_vjp(predict)
    f.defvjp(forward, backward)
    return f


def forward(params, x):
    return predict(params, x), None


# ---- before there is a rule, or in a mode for which there is none -------------------------------


@mistake
def no_rule_for_tangents():
    differentiate(phalanx.custom_jvp(predict))


@mistake
def no_rules_for_cotangents():
    differentiate(phalanx.jit(phalanx.custom_vjp(predict)))


@mistake
def forward_mode():
    f = with_vjp(forward, lambda _, ct: (None, None))
    phalanx.jvp(lambda x: f(PARAMS, x), (X,), (X,))


@mistake
def forward_mode_of_a_linear_function():
    f = with_vjp(forward, lambda _, ct: (None, None))
    phalanx.linearize(lambda x: f(PARAMS, x), X)[1](X)


@mistake
def differentiated_by_what_it_closes_over():
    def loss(w, x):
        @phalanx.custom_vjp
        def scaled(x):
            return w * x

        scaled.defvjp(lambda x: (w * x, None), lambda _, ct: (w * ct,))
        return scaled(x)

    phalanx.grad(loss)(2.0, 3.0)


@mistake
def not_a_function():
    phalanx.custom_jvp(X)


@mistake
def rule_that_is_no_function():
    phalanx.custom_vjp(predict).defvjp(forward, None)


# ---- the rule for tangents ----------------------------------------------------------------------


@mistake
def rule_that_returns_no_pair():
    def rule(primals, tangents):
        return predict(*primals)["norm"]

    differentiate(with_jvp(rule))


@mistake
def rule_whose_results_have_another_structure():
    def rule(primals, tangents):
        out = predict(*primals)
        return out["out"], out["out"]

    differentiate(phalanx.jit(with_jvp(rule)))


@mistake
def rule_whose_results_have_other_types():
    def rule(primals, tangents):
        out = predict(*primals)
        return {**out, "norm": primals[1]}, out

    differentiate(phalanx.jit(with_jvp(rule)))


@mistake
def rule_whose_tangents_have_another_structure():
    def rule(primals, tangents):
        out = predict(*primals)
        return out, {"out": out["out"]}

    differentiate(with_jvp(rule))


@mistake
def rule_whose_tangents_have_other_types():
    def rule(primals, tangents):
        out = predict(*primals)
        return out, {"out": tangents[1].astype("float16"), "norm": out["norm"]}

    differentiate(with_jvp(rule))


@mistake
def rule_that_returns_the_tangents_first():
    def rule(primals, tangents):
        return predict(primals[0], tangents[1]), predict(*primals)

    differentiate(with_jvp(rule))


@mistake
def rule_for_too_few_arguments():
    f = phalanx.custom_jvp(predict)
    f.defjvps(None)
    differentiate(f)


@mistake
def rules_for_each_argument_where_some_are_not_differentiated():
    phalanx.custom_jvp(predict, nondiff_argnums=(0,)).defjvps(None)


# ---- the rules for cotangents -------------------------------------------------------------------


@mistake
def forward_that_returns_no_pair():
    def forward(params, x):
        return params["b"][0]

    differentiate(with_vjp(forward, lambda _, ct: (None, None)))


@mistake
def forward_with_another_result():
    def forward(params, x):
        return {"out": x, "norm": x}, None

    differentiate(phalanx.jit(with_vjp(forward, lambda _, ct: (None, None))))


@mistake
def backward_with_too_few_cotangents():
    def backward(_, ct):
        return (ct["out"],)

    differentiate(with_vjp(forward, backward))


@mistake
def backward_that_returns_no_tuple():
    def backward(_, ct):
        return 1.0

    differentiate(with_vjp(forward, backward))


@mistake
def backward_with_another_structure():
    def backward(_, ct):
        return {"w": ct["out"]}, None

    differentiate(with_vjp(forward, backward))


@mistake
def backward_with_an_array_for_a_tree():
    def backward(_, ct):
        return {"w": ct["out"], "b": ct["norm"]}, None

    differentiate(with_vjp(forward, backward))


@mistake
def backward_with_another_shape():
    def backward(_, ct):
        return {"w": ct["norm"], "b": None}, None

    differentiate(with_vjp(forward, backward))


@mistake
def backward_with_another_dtype():
    def backward(_, ct):
        return None, ct["out"].astype("int32")

    differentiate(with_vjp(forward, backward))


@mistake
def backward_with_a_string():
    def backward(_, ct):
        return None, "zero"

    differentiate(with_vjp(forward, backward))


# ---- arguments ----------------------------------------------------------------------------------


@mistake
def argument_that_is_no_array():
    differentiate(lambda params, x: {"out": phalanx.custom_jvp(lambda x, mode: x)(x, "fast")})


@mistake
def argument_by_keyword_alone():
    f = phalanx.custom_jvp(lambda x, *, scale: scale * x)
    phalanx.grad(lambda x: f(x, scale=2.0))(1.0)


@mistake
def argument_that_is_missing():
    f = phalanx.custom_vjp(predict)
    phalanx.grad(lambda x: f(x=x))(1.0)


@mistake
def position_that_is_not_there():
    phalanx.custom_vjp(predict, nondiff_argnums=2)


# ---- lanes, and traced values -------------------------------------------------------------------


@mistake
def rule_that_differs_between_lanes():
    f = phalanx.custom_jvp(lambda x: lax.pmean(x, "i"))
    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
    mapped = phalanx.jit(phalanx.vmap(f, axis_name="i"))
    phalanx.grad(lambda x: jnp.sum(mapped(x)))(X)


@mistake
def value_of_an_outer_transformation():
    class Hidden:
        __slots__ = ("value",)

    def lane(w, x):
        Hidden.value = w
        f = phalanx.custom_jvp(lambda x: x)
        f.defjvp(lambda primals, tangents: (primals[0], Hidden.value * tangents[0]))
        return f(x)

    phalanx.grad(lambda x: jnp.sum(phalanx.vmap(lane)(X, x)))(X)


@mistake
def gradient_that_is_no_function():
    phalanx.custom_gradient(lambda x: (x, x))(1.0)


def test_messages(golden):
    golden(mistake.texts())
