"""Every primitive where a dimension of its examples has length 0: it and all of its rules."""

import functools

import numpy as np
import pytest
from msgspec.structs import replace

import phalanx
import phalanx.numpy as jnp
from phalanx.core.primitive import REGISTRY, NoRule
from phalanx.core.types import ArrayType, operand_type
from phalanx.laws.primitives import Case


def cases():
    """The examples without axes, with all dimensions of one length made empty, where the type
    rule allows it."""
    for prim in REGISTRY.values():
        for example in prim.examples:
            drawn = [a for a in example.args if isinstance(a, ArrayType)]
            for length in {n for a in drawn for n in a.shape} if not example.axes else ():
                args = tuple(without(a, length) for a in example.args)
                if is_allowed(prim, args, example.params):
                    yield Case(prim, replace(example, args=args))


def without(operand, length):
    if not isinstance(operand, ArrayType):
        return operand
    return operand.update(shape=tuple(0 if n == length else n for n in operand.shape))


def is_allowed(prim, args, params):
    try:
        prim.type(*[a if isinstance(a, ArrayType) else operand_type(a) for a in args], **params)
    except (TypeError, ValueError, IndexError):
        return False
    return True


CASES = list(cases())


def test_they_are_compiled_and_run():
    """All in one program."""
    outs = phalanx.jit(
        lambda operands: [c.bind(*xs) for c, xs in zip(CASES, operands, strict=True)]
    )([c.operands() for c in CASES])
    for case, out in zip(CASES, outs, strict=True):
        types = [operand_type(a) if not isinstance(a, ArrayType) else a for a in case.example.args]
        wanted = case.prim.type(*types, **case.example.params)
        wanted = wanted if case.prim.multi else [wanted]
        assert [x.shape for x in case.tree(out)] == [t.shape for t in wanted], case.who("empty")


@pytest.mark.parametrize("name", sorted({c.prim.name for c in CASES}))
def test_rules(name):
    for case in CASES:
        if case.prim.name == name and all(isinstance(x, np.ndarray) for x in case.operands()):
            derivatives(case)
            lanes(case)


def derivatives(case):
    operands = case.operands()
    floats = tuple(i for i, x in enumerate(operands) if x.dtype.kind == "f")
    given = phalanx.eval_shape(case.bind, *operands)
    inexact = any(jnp.issubdtype(x.dtype, jnp.floating) for x in case.tree(given))
    if isinstance(case.prim.linearize, NoRule) or not floats or not inexact:
        return
    slopes = phalanx.eval_shape(phalanx.grad(functools.partial(total, case), floats), *operands)
    assert [s.shape for s in slopes] == [operands[i].shape for i in floats], case.who("derivative")


def total(case, *operands):
    outs = case.tree(case.bind(*operands))
    return sum(jnp.sum(x) for x in outs if jnp.issubdtype(x.dtype, jnp.floating))


def lanes(case):
    operands = case.operands()
    one = case.tree(phalanx.eval_shape(case.bind, *operands))
    for size in (0, 2):
        stacks = [np.zeros((size, *x.shape), x.dtype) for x in operands]
        out = case.tree(phalanx.eval_shape(phalanx.vmap(case.bind), *stacks))
        assert [x.shape for x in out] == [(size, *x.shape) for x in one], case.who(f"{size} lanes")
