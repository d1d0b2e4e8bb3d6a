"""Linear equations whose matrices are known by their products alone."""

from phalanx.scipy.sparse import linalg

__all__ = ["linalg"]
