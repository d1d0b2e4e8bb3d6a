"""What passes and transformations make of programs, from text to text."""

import pytest

import phalanx
import tests.texts
from phalanx.errors import ProgramError
from phalanx.transforms.dce import dce
from phalanx.transforms.linearize import jvp_program, linearize_program
from phalanx.transforms.partial_eval import partial_eval
from tests.parsing import NotRead, parse


def test_what_is_read_prints_as_it_was_written(monkeypatch):
    def printed(f, xs):
        traced = (f if hasattr(f, "trace") else phalanx.jit(f)).trace(*xs)
        return lambda: str(traced.jaxpr)

    monkeypatch.setattr(tests.texts, "of", printed)
    read = 0
    for _, text in tests.texts.texts():
        try:
            program = parse(text())
        except NotRead:  # roles of lanes and blocks, arrays as constants
            continue
        assert str(program) == text()
        read += 1
    assert read > 60


def test_programs_are_checked_when_they_are_read():
    with pytest.raises(ProgramError, match="its type rule gives"):
        parse("f(a: f32[3]) {\n  b: f32[2] = sin a\n  return b\n}")
    with pytest.raises(NotRead):
        parse("f(a: f32[3]) {\n  b: f32[3] = sine a\n  return b\n}")


CALL = """\
f(a: f32[3], b: f32[3]) {
  c: f32[3], d: f32[3] = call[program=g(a: f32[3], b: f32[3]) {
    c: f32[3] = exp a
    d: f32[3] = mul c b
    return c, d
  }] a b
  e: f32[3] = sin d
  return c, d
}"""


def test_dead_code_goes_here_and_in_what_is_called():
    program = parse(CALL.replace("return c, d\n}", "return c\n}"))
    assert (
        str(dce(program))
        == """\
f(a: f32[3], b: f32[3]) {
  c: f32[3] = call[program=g(a: f32[3]) {
    b: f32[3] = exp a
    return b
  }] a
  return c
}"""
    )


def test_what_is_known_is_computed_apart_from_what_is_linear():
    program = dce(parse(CALL))
    assert (
        str(partial_eval(program, (False, True)))
        == """\
f(a: f32[3], b: f32[3]) {
  c: f32[3] = call[program=g(a: f32[3]) {
    b: f32[3] = exp a
    return b
  }] a
  d: f32[3] = call[program=linear(a: f32[3], b: f32[3]) {
    c: f32[3] = mul a b
    return c
  }] c b
  return c, d
}"""
    )


def test_a_tangent_is_computed_beside_its_primal():
    program = parse("f(a: f32[3]) {\n  b: f32[3] = sin a\n  return b\n}")
    assert (
        str(jvp_program(program, (True,)).program)
        == """\
f(a: f32[3], b: f32[3]) {
  c: f32[3] = sin a
  d: f32[3] = cos a
  e: f32[3] = mul b d
  return c, e
}"""
    )


def test_a_residual_is_stored_before_it_is_repeated():
    halves = linearize_program(
        parse("""\
f(a: f32[], b: f32[3]) {
  c: f32[] = sin a
  d: f32[3] = broadcast[dims=(), shape=(3,)] c
  e: f32[3] = mul d b
  return e
}"""),
        (False, True),
    )
    assert (
        str(halves.primal)
        == """\
f(a: f32[], b: f32[3]) {
  c: f32[] = sin a
  d: f32[3] = broadcast[dims=(), shape=(3,)] c
  e: f32[3] = mul d b
  return e, c
}"""
    )
    assert (
        str(halves.linear)
        == """\
linear(a: f32[], b: f32[3]) {
  c: f32[3] = broadcast[dims=(), shape=(3,)] a
  d: f32[3] = mul c b
  return d
}"""
    )
