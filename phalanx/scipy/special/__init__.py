"""Special functions, with SciPy's names. Integers become floats; shapes are broadcast."""

from phalanx.base.lazily import later as _later

_later(__name__)
