"""Every dtype that the peer takes for random numbers, initial weights and frequencies is taken.

And the result has the dtype that the peer's has, which is the one that was asked for, in 32 bits
unless there are 64.
"""

import warnings

import jax
import numpy as np
import pytest

import phalanx as px

DTYPES = (
    None, "float16", "bfloat16", "float32", "float64", "complex64", "complex128", "bool",
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
)  # fmt: skip
SHAPE = (3, 4, 4)
V = np.float32([0.2, 0.3, 0.5])

# of a library, a key and a dtype
DRAWN = {
    **{
        name: lambda m, key, d, name=name, args=args: (
            getattr(m.random, name)(key, *args, (2,), d)
        )
        for name, args in {
            **dict.fromkeys([
                "uniform", "normal", "bits", "gumbel", "exponential", "laplace", "logistic",
                "cauchy", "rademacher", "maxwell",
            ], ()),
            **dict.fromkeys([
                "gamma", "loggamma", "poisson", "pareto", "t", "chisquare", "rayleigh", "wald",
                "lognormal", "generalized_normal",
            ], (2.0,)),
            **dict.fromkeys(["beta", "f", "double_sided_maxwell", "weibull_min"], (1.0, 2.0)),
            "truncated_normal": (-1.0, 1.0), "binomial": (5.0, 0.5), "geometric": (0.5,),
            "triangular": (0.0, 0.5, 1.0), "dirichlet": (V,), "orthogonal": (3,),
            "ball": (3, 2.0),
        }.items()
    },
    "randint": lambda m, key, d: m.random.randint(key, (2,), 0, 5, d),
    "multinomial": lambda m, key, d: m.random.multinomial(key, 5.0, V, dtype=d),
    "fftfreq": lambda m, key, d: m.numpy.fft.fftfreq(4, dtype=d),
    "rfftfreq": lambda m, key, d: m.numpy.fft.rfftfreq(4, dtype=d),
    "zeros": lambda m, key, d: m.nn.initializers.zeros(key, SHAPE, d),
    "ones": lambda m, key, d: m.nn.initializers.ones(key, SHAPE, d),
    "constant": lambda m, key, d: m.nn.initializers.constant(1.0, d)(key, SHAPE),
    **{
        f"initializers.{name}": lambda m, key, d, name=name: (
            getattr(m.nn.initializers, name)(dtype=float if d is None else d)(key, SHAPE)
        )
        for name in (
            "glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "lecun_normal",
            "lecun_uniform", "kaiming_normal", "kaiming_uniform", "xavier_normal",
            "xavier_uniform", "normal", "uniform", "truncated_normal", "orthogonal",
            "delta_orthogonal",
        )
    },
    "variance_scaling normal": lambda m, key, d: (
        m.nn.initializers.variance_scaling(1.0, "fan_avg", "normal")(key, SHAPE, d or float)
    ),
}  # fmt: skip
# It gives floats for integers, of which some are infinite; and has no sign in booleans.
NOT_AS = {"rfftfreq": "biu", "rademacher": "b"}


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("name", DRAWN)
def test_dtypes_that_the_peer_takes(name, x64):
    with px.enable_x64(x64), jax.enable_x64(x64):
        for dtype in DTYPES:
            wanted = result(jax, name, dtype)
            if wanted is not None and np.dtype(dtype or float).kind not in NOT_AS.get(name, ""):
                assert result(px, name, dtype) == wanted, dtype


def result(library, name, dtype):
    """The type of what ``library`` gives; None where it refuses."""
    key = library.random.key(0)
    try:
        with warnings.catch_warnings(action="ignore"):
            out = library.eval_shape(lambda: DRAWN[name](library, key, dtype))
    except (TypeError, ValueError, NotImplementedError):
        return None
    return out.shape, out.dtype


@pytest.mark.parametrize("distribution", ["uniform", "normal", "truncated_normal"])
def test_complex_weights_have_the_variance_that_was_asked_for(distribution):
    init = px.nn.initializers.variance_scaling(3.0, "fan_in", distribution)
    x = np.asarray(init(px.random.key(0), (100, 300), np.complex64)) * np.sqrt(100 / 3)
    assert abs(x.mean()) < 0.02
    assert abs((abs(x) ** 2).mean() - 1) < 0.02
    assert abs((x**2).mean()) < 0.02  # no direction is before others
    most = {"uniform": np.sqrt(2), "truncated_normal": 2 / np.sqrt(0.9253711), "normal": 9}
    assert abs(x).max() <= most[distribution] * (1 + 1e-6)


def test_frequencies_as_integers_are_rounded_towards_zero():
    assert px.numpy.fft.fftfreq(4, 0.1, dtype=int).tolist() == [0, 2, -5, -2]
    assert px.numpy.fft.rfftfreq(4, 0.1, dtype=np.uint8).tolist() == [0, 2, 5]


def test_counts_of_trials_as_integers():
    drawn = px.random.multinomial(px.random.key(0), 5, V, shape=(20,), dtype=np.int32)
    assert drawn.dtype == np.int32 and (drawn.sum(-1) == 5).all()
