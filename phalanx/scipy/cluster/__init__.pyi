"""The names of ``phalanx.scipy.cluster``, each with the module that has it."""

from phalanx.scipy.cluster import vq as vq
