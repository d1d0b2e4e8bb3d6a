"""Convolution, spectra and images between their elements, against SciPy in float64."""

from functools import partial
from itertools import product

import numpy as np
import pytest
import scipy.ndimage
import scipy.signal

import phalanx
from phalanx import laws
from phalanx.errors import ShapeError
from phalanx.scipy import ndimage, signal
from tests.compare import close

near = partial(close, rtol=1e-4, atol=1e-4)

SOURCE = np.random.default_rng(0)
X, Y, Z = (SOURCE.normal(size=s) for s in ((7, 6), (3, 4), (2, 40)))


def single(x):
    return x.astype(np.complex64 if np.iscomplexobj(x) else np.float32)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolutions(mode):
    both = X[0, :5] + 1j * X[1, :5], Y[0] * 1j + Y[1]
    for name in ("convolve", "correlate"):
        f, g = getattr(signal, name), getattr(scipy.signal, name)
        for x, y in ((X[0], Y[0]), (Y[0], X[0]), (X, Y), (Y, X), both):
            near(f(single(x), single(y), mode), g(x, y, mode, "direct"))
        near(f(single(X), single(Y), mode, "fft"), g(X, Y, mode, "direct"))
    for name in ("convolve2d", "correlate2d"):
        f, g = getattr(signal, name), getattr(scipy.signal, name)
        near(f(single(X), single(Y), mode), g(X, Y, mode))
    got = signal.fftconvolve(single(Z), single(Y[:2]), mode, 1)
    near(got, scipy.signal.fftconvolve(Z, Y[:2], mode, 1))
    near(signal.fftconvolve(*map(single, both), mode), scipy.signal.fftconvolve(*both, mode))


@pytest.mark.parametrize(
    "options",
    [
        {"nperseg": 16},
        {"nperseg": 9, "noverlap": 3, "nfft": 16, "fs": 3.0, "window": "hamming"},
        {"nperseg": 16, "boundary": "even", "padded": False, "window": "blackman"},
        {"nperseg": 8, "boundary": None, "detrend": "constant", "window": ("kaiser", 4.0)},
        {"nperseg": 16, "boundary": "odd", "detrend": "linear", "return_onesided": False},
        {"nperseg": 100, "boundary": "constant", "window": "boxcar"},
    ],
)
@pytest.mark.filterwarnings("ignore:nperseg")
def test_transforms_of_segments(options):
    for got, wanted in zip(
        signal.stft(single(Z), **options), scipy.signal.stft(Z, **options), strict=True
    ):
        near(got, wanted)
    kept = {k: v for k, v in options.items() if k not in ("boundary", "padded")}
    for scaling in ("density", "spectrum"):
        wanted = scipy.signal.welch(Z, **kept, scaling=scaling)
        near(signal.welch(single(Z), **kept, scaling=scaling)[1], wanted[1])


def test_other_axes_and_complex_signals():
    wanted = scipy.signal.stft(Z.T, nperseg=8, axis=0)
    near(signal.stft(single(Z.T), nperseg=8, axis=0)[2], wanted[2])
    z = Z[0] + 1j * Z[1]
    wanted = scipy.signal.stft(z, nperseg=8, return_onesided=False)
    near(signal.stft(single(z), nperseg=8)[2], wanted[2])
    f, density = signal.csd(single(Z[0]), single(Z[1, :30]), nperseg=8, average="median")
    wanted = scipy.signal.csd(Z[0], Z[1, :30], nperseg=8, average="median")
    near(f, wanted[0])
    near(density, wanted[1])
    _, density = signal.csd(single(Z[0]), None, nperseg=8)
    near(density, scipy.signal.welch(Z[0], nperseg=8)[1])
    assert density.dtype == np.float32


@pytest.mark.parametrize("nperseg", [None, 8, 9, 15])
@pytest.mark.parametrize("noverlap", [None, 3])
@pytest.mark.filterwarnings("ignore")
def test_signals_are_as_long_as_those_of_scipy(nperseg, noverlap):
    """Also where the lengths do not fit: both refuse."""
    for nfft, boundary, onesided, turned in product(
        (None, 9, 16), (True, False), (True, False), (False, True)
    ):
        spectra = (Z[:, :20] + 1j * Z[:, 20:]).reshape(2, 5, 4)
        spectra = np.moveaxis(spectra, (1, 2), (2, 0)) if turned else spectra
        options = {"nperseg": nperseg, "noverlap": noverlap, "nfft": nfft, "boundary": boundary}
        options |= {"input_onesided": onesided}
        options |= {"time_axis": 0, "freq_axis": 2} if turned else {}
        try:
            _, wanted = scipy.signal.istft(spectra, **options)
        except ValueError:
            with pytest.raises(ShapeError):
                signal.istft(single(spectra), **options)
        else:
            times, got = signal.istft(single(spectra), **options)
            near(got, wanted, rtol=1e-3, atol=1e-3)
            assert times.shape == got.shape[-1:] if not turned else got.shape[:1]


def test_the_way_back():
    for options in ({"nperseg": 8}, {"nperseg": 9, "noverlap": 6}, {"nperseg": 8, "nfft": 16}):
        _, _, spectra = scipy.signal.stft(Z, fs=2.0, **options)
        times, got = signal.istft(single(spectra), fs=2.0, **options)
        near(got, scipy.signal.istft(spectra, fs=2.0, **options)[1])
        near(times, np.arange(got.shape[-1]) / 2)
    _, _, spectra = scipy.signal.stft(Z, nperseg=8)
    turned = np.moveaxis(spectra, (1, 2), (2, 0))
    near(
        signal.istft(single(turned), time_axis=0, freq_axis=2)[1],
        scipy.signal.istft(turned, time_axis=0, freq_axis=2)[1],
    )


def test_trends():
    for options in ({}, {"type": "constant"}, {"bp": [10, 25]}, {"axis": 0}):
        near(signal.detrend(single(Z), **options), scipy.signal.detrend(Z, **options))


@pytest.mark.parametrize("mode", ["constant", "nearest", "wrap", "mirror", "reflect"])
def test_between_elements(mode):
    places = SOURCE.uniform(-12, 18, (2, 5, 6))
    if mode == "constant":  # there SciPy fades at the edge
        places = np.where((places > -1) & (places < 0), 0, places)
        places = np.where((places > 5) & (places < 8), 3, places)
    for order in (0, 1):
        scipys = "grid-wrap" if mode == "wrap" else mode
        wanted = scipy.ndimage.map_coordinates(X, places, order=order, mode=scipys, cval=7.0)
        near(ndimage.map_coordinates(single(X), list(single(places)), order, mode, 7.0), wanted)
    one = ndimage.map_coordinates(single(X[:1]), [places[0] * 0 + 2, single(places[1])], 1, mode)
    assert np.isfinite(one).all()


def test_transformed():
    f = phalanx.jit(lambda x, y: signal.fftconvolve(x, y, "same"))
    wanted = [np.convolve(x, Y[0])[1:7] for x in X]
    near(phalanx.vmap(f, (0, None))(single(X), single(Y[0])), wanted)
    laws.check_grads(lambda x, y: signal.convolve(x, y, "valid"), (X[:4, :3], Y[:2, :2]), order=1)
    laws.check_grads(lambda x: signal.stft(x, nperseg=4)[2].real, (Z[0, :9],), order=1)
    places = SOURCE.uniform(0.2, 0.8, (2, 4)) + 2
    laws.check_grads(lambda x, p: ndimage.map_coordinates(x, list(p), 1), (X, places), order=1)


def test_what_is_refused():
    with pytest.raises(ValueError, match="mode"):
        signal.convolve(X, Y, "some")
    with pytest.raises(ShapeError, match="at least as long"):
        signal.convolve(X, Y.T[:, :1].repeat(9, 1), "valid")
    with pytest.raises(ValueError, match="fillvalue"):
        signal.convolve2d(X, Y, boundary="wrap")
    with pytest.raises(ValueError, match="'hamm'"):
        signal.stft(Z, window="hamm")
    with pytest.raises(ShapeError, match="share"):
        signal.stft(Z, nperseg=8, noverlap=8)
    with pytest.raises(ValueError, match="order"):
        ndimage.map_coordinates(X, [X, X], 3)
    with pytest.raises(ShapeError, match="each dimension"):
        ndimage.map_coordinates(X, [X], 1)
