"""SciPy for programs that are transformed, compiled and mapped over devices."""

from phalanx.base.lazily import later as _later

_later(__name__)
