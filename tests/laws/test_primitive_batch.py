"""Every primitive vectorized is the loop over its lanes, whichever operands have lanes, where."""

import os

from phalanx.laws.primitives import law_batch

CHOICES = None if os.environ.get("PHALANX_HYPOTHESIS") == "heavy" else 12


def test_batch(prim, example):
    law_batch(prim, example, CHOICES)
