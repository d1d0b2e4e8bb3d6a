"""Names and keywords that published libraries use: they are here, or an error says what to use.

``used_names.csv`` has them, counted in 68 packages: the name, how many use it, and with which
keywords how many. Names of what lies below the public face are those of ``phalanx.compat``.
"""

import csv
import importlib
import inspect
from dataclasses import replace
from pathlib import Path

import numpy as np

from phalanx.base.former_names import FORMER_KEYWORDS, REPLACED_KEYWORDS
from tests.laws.arguments import calls
from tests.laws.test_calls import typed

# names that nobody is told of: of another module below the face, misspelt, or of the past
UNTOLD = {"flatten_fun_nokwargs", "pxla", "tree_util.treep_map"}
NOT_TAKEN = {"experimental.layout.Layout sharding"}  # which is of the past; Format has one

X = np.float32([[3, 1, 2], [5, 4, 6]])
# what is given for keywords that many packages use, beside the first arguments of a call
VALUES = {
    "dtype": np.float16, "axis": 0, "keepdims": True, "precision": "highest", "where": X > 1,
    "preferred_element_type": np.float32, "initial": 0.0, "out_sharding": None, "ddof": 1,
    "equal_nan": True, "rtol": 0.1, "atol": 0.1, "size": 3, "fill_value": 0, "stable": True,
    "mode": "clip", "side": "right", "indexing": "ij", "sparse": True, "approximate": False,
    "reverse": True, "unroll": 2, "descending": True, "num": 5, "endpoint": False, "copy": True,
    "axis1": 0, "axis2": 1, "offset": 1, "lower": True, "is_leaf": lambda x: False,
    "has_aux": False, "argnums": 0, "in_axes": 0, "out_axes": 0, "static_argnums": (),
}  # fmt: skip


class Use:
    """A name, and how many packages use it; the same of the keywords that they give."""

    def __init__(self, row):
        self.name, self.count = row["name"], int(row["packages"])
        pairs = [pair.split("=") for pair in row["keywords"].split()]
        self.keywords = {keyword: int(count) for keyword, count in pairs}
        self.module = self.name.rpartition(".")[0]

    @property
    def found(self):
        """What it is the name of; an ``AttributeError`` where it is not there."""
        try:
            return getattr(module_of(self.module), self.name.rpartition(".")[2])
        except AttributeError as error:
            return error

    @property
    def is_told(self):
        """Whether it is there, or the error says what to use."""
        return not isinstance(self.found, AttributeError) or "is not there: " in str(self.found)


def module_of(name):
    try:
        return importlib.import_module(f"phalanx.{name}".rstrip("."))
    except ModuleNotFoundError:  # an attribute of a module
        package, _, last = name.rpartition(".")
        return getattr(module_of(package), last)


with (Path(__file__).parent / "used_names.csv").open(encoding="utf-8") as file:
    USES = [Use(row) for row in csv.DictReader(file)]
CALLS = {str(call): call for call in calls() if call.args is not None}


def test_names_are_there_or_told():
    assert len(USES) > 900
    assert {use.name for use in USES if not use.is_told} == UNTOLD


def test_in_every_module_nearly_all_that_is_used_is_there_or_told():
    for module in {use.module for use in USES}:
        counts = [(use.count, use.is_told) for use in USES if use.module == module]
        told = sum(count for count, is_told in counts if is_told)
        assert told >= 0.995 * sum(count for count, _ in counts), module


def keywords_of(value):
    """The keywords that a function takes; None for any, and where Python cannot tell."""
    try:
        parameters = inspect.signature(value).parameters.values()
    except ValueError:  # of a class in C, before Python 3.12
        return None
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}


def test_keywords_are_taken_or_told():
    refused = set()
    for use in USES:
        if use.keywords and not isinstance(use.found, AttributeError):
            taken = keywords_of(use.found)
            lacking = set() if taken is None else {*use.keywords} - taken - {*REPLACED_KEYWORDS}
            told = {k for k in lacking if {*FORMER_KEYWORDS.get(k, "").split()} & (taken or set())}
            refused |= {f"{use.name} {keyword}" for keyword in lacking - told}
    assert refused == NOT_TAKEN


def options():
    """Of calls the same with a keyword that packages give, and its default."""
    for use in USES:
        call = CALLS.get(use.name)
        for keyword in use.keywords if call is not None and not call.communicates else ():
            parameter = inspect.signature(call.function).parameters.get(keyword)
            if parameter is not None and parameter.default is not parameter.empty:
                given = inspect.signature(call.function).bind_partial(*call.args, **call.keywords)
                if keyword not in given.arguments:
                    yield call, keyword, parameter.default


def with_option(call, keyword, value):
    return replace(call, keywords={**call.keywords, keyword: value})


def test_keywords_may_be_given_with_their_defaults():
    tried = list(options())
    assert len(tried) > 400
    for call, keyword, default in tried:
        assert typed(with_option(call, keyword, default)) == typed(call), (call, keyword)


def test_keywords_are_taken_or_refused_for_a_reason():
    tried, taken = 0, 0
    for call, keyword, _ in options():
        if keyword in VALUES:
            tried += 1
            try:
                typed(with_option(call, keyword, VALUES[keyword]))
                taken += 1
            except (TypeError, ValueError) as error:
                assert str(error).startswith(f"{call.name}: ")
                assert "called with" not in str(error), error
    assert tried > 250 and taken > 0.9 * tried
