"""Linear algebra of matrices [..., m, n], with SciPy's names: dimensions in front are a batch.

Arguments that say what may be overwritten, or what is to be checked, change nothing: arrays are
immutable, and what is not finite gives NaN. ``phalanx.numpy.linalg`` has more.
"""

from phalanx.base.lazily import later as _later

_later(__name__)
