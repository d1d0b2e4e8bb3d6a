"""``python -m tests.words``: words in names of the engine that the field does not use.

The field's words are those of the glossary, of public names of JAX, NumPy and Python, of operations
of StableHLO, and English function words. All others are printed with how often they are used, in
how many files, and in which name most, the most frequent first. The list is for a reader to look
at: nothing fails.
"""

import builtins
import io
import keyword
import re
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import jax
import numpy as np
from jaxlib.mlir.dialects import stablehlo

ROOT = Path(__file__).parents[1]
ENGINE = "base", "core", "transforms", "control", "run", "spmd", "api", "xla"
FUNCTION_WORDS = """
    a all an and any are as at be before both but by can do does each else even every first for from
    has have how if in inside into is it its itself last least left may more most must next no none
    not of on once one only or other out outside over own per same so some than that the then there
    these this to two until up was what when where which while who with within without
"""
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def words(text: str) -> set[str]:
    """The words in ``text``, also of names in the style of functions or of classes, in singular."""
    found = [word.lower() for word in WORD.findall(text)]
    return {word[:-1] if word.endswith("s") and len(word) > 3 else word for word in found}


def usual() -> set[str]:
    """The field's words."""
    glossary = (ROOT / "docs/architecture.md").read_text("utf-8").partition("\n## Glossary")[2]
    modules = jax, jax.core, jax.lax, jax.numpy, jax.nn, jax.random, jax.sharding, jax.tree_util
    numpy = np, np.ndarray, np.linalg
    public = [name for module in (*modules, *numpy, stablehlo, builtins) for name in dir(module)]
    first = re.findall(r"^\|([^|]*)\|", glossary, re.MULTILINE)
    python = *keyword.kwlist, *sys.stdlib_module_names
    return words(" ".join([*first, *public, *python, FUNCTION_WORDS]))


def names() -> Iterator[tuple[str, Path]]:
    """Each use of a name in the engine, and the file."""
    for package in ENGINE:
        for path in (ROOT / "phalanx" / package).rglob("*.py"):
            for token in tokenize.generate_tokens(io.StringIO(path.read_text("utf-8")).readline):
                if token.type == tokenize.NAME:
                    yield token.string, path


def unusual() -> Iterator[tuple[str, int, int, str]]:
    """Words that are not usual: how often they are used, in how many files, and a name."""
    known = usual()
    files: defaultdict[str, set[Path]] = defaultdict(set)
    holding: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for name, path in names():
        for word in words(name):
            files[word].add(path)
            holding[word][name] += 1
    for word, inside in sorted(holding.items(), key=lambda item: -item[1].total()):
        if word not in known:
            yield word, inside.total(), len(files[word]), inside.most_common(1)[0][0]


if __name__ == "__main__":
    for word, uses, count, name in unusual():
        print(f"{uses:6} {count:4}  {word:24} {name}")
