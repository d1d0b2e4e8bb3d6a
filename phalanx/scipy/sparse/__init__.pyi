"""The names of ``phalanx.scipy.sparse``, each with the module that has it."""

from phalanx.scipy.sparse import linalg as linalg
