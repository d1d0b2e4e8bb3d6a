"""Functions that neural networks are made of: activations, softmax, initial weights."""

from phalanx.base.lazily import later as _later

_later(__name__)
