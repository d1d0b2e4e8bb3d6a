"""Every primitive compiles for every dtype that its type rule takes."""

from phalanx.laws.primitives import law_dtypes


def test_dtypes(prim, example):
    law_dtypes(prim, example)
