"""The classes of trees that jaxlib has without docstrings: what we say of them is so."""

import doctest

import pytest

from docs.generator.docstrings import doc_of
from phalanx import tree_util

CLASSES = ["PyTreeDef", "DictKey", "SequenceKey", "GetAttrKey", "FlattenedIndexKey"]


@pytest.mark.parametrize("name", CLASSES)
def test_classes_of_trees_have_examples_that_run(name):
    doc = doc_of(getattr(tree_util, name))
    assert doc.summary and doc.examples
    for example in doc.examples:
        test = doctest.DocTestParser().get_doctest(example, {}, name, None, None)
        assert doctest.DocTestRunner(verbose=False).run(test) == (0, len(test.examples))


def test_structures_have_what_is_said_of_them():
    treedef = tree_util.tree_structure([1, (2,)])
    assert all(hasattr(treedef, name) for name in doc_of(tree_util.PyTreeDef).attributes)
