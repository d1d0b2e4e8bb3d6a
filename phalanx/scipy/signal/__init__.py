"""Signals: convolution, correlation, spectra, trends."""

from phalanx.base.lazily import later as _later

_later(__name__)
