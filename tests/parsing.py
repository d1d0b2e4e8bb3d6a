"""Programs from their printed form, so that a pass is tested from text to text.

Read are operations on variables and numbers, with parameters that are numbers, tuples of them and
dtypes, and programs that are called. A number is of the dtype of the result, of a comparison that
of a variable beside it; a whole number among others is an index, an int32.
"""

import ast
import re
from collections.abc import Iterator
from typing import Any

from phalanx.base import dtypes
from phalanx.core.check import check
from phalanx.core.primitive import REGISTRY
from phalanx.core.program import Atom, Equation, Literal, Program, Var
from phalanx.core.types import ArrayType

DTYPES = {
    dtypes.short_name(d): d for d in map(dtypes.as_dtype, ("bool", *map(str, dtypes.INEXACT)))
}
DTYPES |= {dtypes.short_name(d): d for d in dtypes.INTEGERS}
PROGRAM = re.compile(r"(?P<name>.*?)\((?P<inputs>.*?)\) \{\n(?P<body>.*)\n\s*\}", re.DOTALL)
TYPE = re.compile(r"(?P<dtype>\w+)\[(?P<shape>[\d,]*)\](?P<weak>~?)")


class NotRead(ValueError):
    """A text has something that is not read here."""


def parse(text: str) -> Program:
    """The program that prints as ``text``; it is checked.

    Raises:
        NotRead: it has something else than what the module says.
    """
    program = read(text.strip())
    check(program)
    return program


def read(text: str) -> Program:
    found = PROGRAM.fullmatch(text)
    if found is None:
        raise NotRead(text)
    names: dict[str, Var] = {}
    inputs = variables(found["inputs"], names)
    *lines, last = statements(found["body"])
    equations = [equation(line, names) for line in lines]
    results = last.removeprefix("return").strip()
    outputs = [atom(word, names, inputs[0]) for word in results.split(", ") if results]
    return Program(inputs, equations, outputs, found["name"])


def statements(body: str) -> Iterator[str]:
    """The equations, those with programs in them as a whole, and what is returned."""
    lines: list[str] = []
    for line in body.splitlines():
        lines.append(line)
        text = "\n".join(lines)
        if text.count("{") == text.count("}"):
            yield text.strip()
            lines = []


def variables(text: str, names: dict[str, Var]) -> list[Var]:
    """Those that ``text`` declares, from now on known by their ``names``."""
    made = [part.split(": ") for part in re.split(r", (?=\w+: )", text) if part]
    names.update({name: Var(type_of(said)) for name, said in made})
    return [names[name] for name, _ in made]


def type_of(text: str) -> ArrayType:
    found = TYPE.fullmatch(text)
    if found is None or found["dtype"] not in DTYPES:
        raise NotRead(text)
    shape = tuple(map(int, filter(None, found["shape"].split(","))))
    return ArrayType(shape, DTYPES[found["dtype"]], bool(found["weak"]))


def equation(text: str, names: dict[str, Var]) -> Equation:
    results, _, operation = text.partition(" = ")
    name = re.match(r"\w*", operation)[0]
    if name not in REGISTRY:
        raise NotRead(text)
    said, words = parameters(operation[len(name) :])
    params = dict(value.split("=", 1) for value in said)
    outputs = tuple(variables(results, {}))
    operands = [names[word] for word in words if word in names]
    compared = outputs[0].type.dtype == DTYPES["b1"]
    like = operands[0] if compared and operands else outputs[0]
    inputs = [atom(word, names, like) for word in words]
    names.update(zip(re.findall(r"(\w+): ", results), outputs, strict=True))
    values = {key: parameter(value) for key, value in params.items()}
    return Equation(REGISTRY[name], inputs, values, outputs, None)


def parameters(text: str) -> tuple[list[str], list[str]]:
    """What stands in brackets, each parameter for itself, and the operands after it."""
    if not text.startswith("["):
        return [], text.split()
    depth, start, parts = 0, 1, list[str]()
    for i, letter in enumerate(text):
        depth += (letter in "[({") - (letter in "])}")
        if depth == 0 or (depth == 1 and text.startswith(", ", i)):
            parts.append(text[start:i])
            start = i + 2
        if depth == 0:
            return parts, text[i + 1 :].split()
    raise NotRead(text)


def parameter(text: str) -> Any:
    if text.endswith("}"):
        return read(text)
    if text in map(str, DTYPES.values()):
        return dtypes.as_dtype(text)
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        raise NotRead(text) from None


def atom(word: str, names: dict[str, Var], like: Var) -> Atom:
    if word in names:
        return names[word]
    try:
        value = float(word) if word.strip("-") in ("inf", "nan") else ast.literal_eval(word)
    except (SyntaxError, ValueError):
        raise NotRead(word) from None
    whole = type(value) is int and like.type.dtype not in dtypes.INTEGERS
    return Literal(dtypes.scalar(value, DTYPES["i32"] if whole else like.type.dtype))
