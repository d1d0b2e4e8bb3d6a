"""Functions of ``phalanx.numpy`` stand in files named after the chapters of NumPy's reference."""

import inspect
from pathlib import Path

import phalanx.numpy as jnp

FILES = {
    "creation": "creation ranges matrices",
    "manipulation": "manipulation joining padding",
    "bits": "bits",
    "indexing": "indexing index_arrays searching matrices",
    "logic": "logic reductions",
    "linear algebra": "products einsums linalg matrices",
    "math: arithmetic": "arithmetic floating_point",
    "math: sums, products, differences": "reductions cumulative differences",
    "math: extrema": "arithmetic reductions",
    "math: rounding": "rounding",
    "math: trigonometry": "trigonometric",
    "math: exponents": "exponents",
    "math: complex numbers": "complex_numbers",
    "math: floating point": "floating_point rounding",
    "math: special functions": "special",
    "math: interpolation": "interpolation",
    "math: convolution": "convolution",
    "polynomials": "polynomials",
    "functional": "functional universal",
    "sets": "sets",
    "sorting, searching, counting": "sorting searching reductions",
    "statistics": "statistics quantiles histograms reductions convolution",
    "windows": "windows",
    "text": "printing",
}
NAMES = {
    "creation": """
        empty empty_like eye identity ones ones_like zeros zeros_like full full_like array asarray
        copy frombuffer from_dlpack fromfile fromfunction fromiter fromstring load arange linspace
        logspace geomspace meshgrid diag diagflat tri tril triu vander astype""",
    "manipulation": """
        reshape ravel shape size ndim moveaxis rollaxis swapaxes transpose permute_dims atleast_1d
        atleast_2d atleast_3d broadcast_arrays broadcast_shapes broadcast_to expand_dims squeeze
        concatenate concat stack block vstack hstack dstack column_stack split array_split dsplit
        hsplit vsplit unstack tile repeat delete insert append resize trim_zeros flip fliplr flipud
        roll rot90 pad matrix_transpose""",
    "bits": """
        bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_invert invert left_shift right_shift
        bitwise_left_shift bitwise_right_shift bitwise_count packbits unpackbits""",
    "indexing": """
        nonzero where indices ix_ ravel_multi_index unravel_index diag_indices diag_indices_from
        mask_indices tril_indices tril_indices_from triu_indices triu_indices_from take
        take_along_axis choose compress diagonal select place put put_along_axis fill_diagonal""",
    "logic": """
        all any isfinite isinf isnan isneginf isposinf iscomplex iscomplexobj isreal isrealobj
        isscalar logical_and logical_or logical_not logical_xor allclose isclose array_equal
        array_equiv greater greater_equal less less_equal equal not_equal""",
    "linear algebra": """
        dot vdot vecdot inner outer matmul matvec vecmat tensordot einsum einsum_path kron cross
        trace""",
    "math: arithmetic": """
        add reciprocal positive negative multiply divide true_divide power pow subtract floor_divide
        float_power fmod mod remainder divmod gcd lcm clip sqrt cbrt square abs absolute fabs sign
        heaviside nan_to_num""",
    "math: sums, products, differences": """
        prod sum nanprod nansum cumulative_sum cumulative_prod cumprod cumsum nancumprod nancumsum
        diff ediff1d gradient trapezoid""",
    "math: extrema": "maximum max amax fmax nanmax minimum min amin fmin nanmin minmax",
    "math: rounding": "round around rint fix floor ceil trunc",
    "math: trigonometry": """
        sin cos tan arcsin asin arccos acos arctan atan hypot arctan2 atan2 degrees radians unwrap
        deg2rad rad2deg sinh cosh tanh arcsinh asinh arccosh acosh arctanh atanh""",
    "math: exponents": "exp expm1 exp2 log log10 log2 log1p logaddexp logaddexp2",
    "math: complex numbers": "angle real imag conj conjugate",
    "math: floating point": "signbit copysign frexp ldexp nextafter spacing modf",
    "math: special functions": "i0 sinc",
    "math: interpolation": "interp",
    "math: convolution": "convolve",
    "polynomials": "poly roots polyval polyfit polyder polyint polyadd polydiv polymul polysub",
    "functional": "apply_along_axis apply_over_axes vectorize frompyfunc piecewise",
    "sets": """
        unique unique_all unique_counts unique_inverse unique_values isin intersect1d setdiff1d
        setxor1d union1d""",
    "sorting, searching, counting": """
        sort lexsort argsort sort_complex partition argpartition top_k argmax nanargmax argmin
        nanargmin argwhere flatnonzero searchsorted extract count_nonzero""",
    "statistics": """
        ptp percentile nanpercentile quantile nanquantile median average mean std var nanmedian
        nanmean nanstd nanvar corrcoef correlate cov histogram histogram2d histogramdd bincount
        histogram_bin_edges digitize""",
    "windows": "bartlett blackman hamming hanning kaiser",
    "text": "array_repr array_str",
}


ROOM = Path(jnp.__file__).parent


def home_of(function):
    """The file of a function in the folder of ``phalanx.numpy``, or the folder in there."""
    source = Path(inspect.getsourcefile(inspect.unwrap(function)))
    return source.relative_to(ROOM).with_suffix("").parts[0] if ROOM in source.parents else None


def is_written_here(name):
    value = getattr(jnp, name)
    return inspect.isfunction(value) and home_of(value) is not None


def test_functions_stand_in_the_files_of_their_chapter():
    elsewhere = {
        name: (chapter, home_of(getattr(jnp, name)))
        for chapter, names in NAMES.items()
        for name in names.split()
        if home_of(getattr(jnp, name)) not in FILES[chapter].split()
    }
    assert not elsewhere


def test_every_function_has_a_chapter():
    known = set(" ".join(NAMES.values()).split())
    assert not {name for name in dir(jnp) if is_written_here(name)} - known
