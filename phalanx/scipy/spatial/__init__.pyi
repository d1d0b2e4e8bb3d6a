"""The names of ``phalanx.scipy.spatial``, each with the module that has it."""

from phalanx.scipy.spatial import transform as transform
