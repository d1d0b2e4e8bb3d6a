"""What doctests of `phalanx.lax` take as given: the names `lax` and `np`."""

import numpy as np
import pytest

from phalanx import lax


@pytest.fixture(autouse=True)
def _given(doctest_namespace):
    doctest_namespace.update(lax=lax, np=np)
