"""What parameters mean that mean the same in many functions: by module, and by their name.

A sentence holds in the functions that the module defines, or a module below it, unless their
docstrings say otherwise, or a module between them and it.
"""

X = "an array, or a number."
PAIR = "an array, or a number; the two broadcast."
SIZE = (
    "the length of the result, which is cut or filled up to it. Needed under `jit`, where lengths "
    "must not depend on values."
)
FILL = "what fills the result up to `size`."
WHERE = "which elements take part: booleans that broadcast with the array; None for all."
KEEPDIMS = "whether axes that are reduced stay, with length 1, so that the result broadcasts."
DENSITY_POINT = "where: an array, or a number."
PROBABILITY = "probabilities, from 0 to 1: an array, or a number."
LOC = "the point at 0 of the standard distribution, to which it is moved."
SCALE = "the factor by which the standard distribution is stretched, positive."
DEVICE = "a device or a sharding: where the result lies; None for the default device."
MATRIX_BATCH = "matrices of shape [..., m, n]; dimensions in front are a batch."
CHECK_FINITE = "has no meaning: nan and infinities are not looked for."
OVERWRITE = "has no meaning: arrays are immutable."

SENTENCES: dict[str, dict[str, str]] = {
    "phalanx": {
        "axis": "the axis along which it works, counted from the end if negative.",
        "dtype": "the dtype of the result; None for the one that follows from the arguments.",
        "out": "must be None: arrays are immutable, and results are returned.",
        "shape": "the shape of the result: a tuple of integers, or an integer.",
        "device": DEVICE,
        "precision": "of products of float32 where hardware has faster, coarser ones: `default`, "
        "`high`, `highest`, or a `lax.Precision`; None: the option `default_matmul_precision`.",
        "preferred_element_type": "the dtype in which products are added up, and of the result; "
        "None: that of the operands.",
        "out_sharding": "how the result lies over devices, as a `NamedSharding` or a `P` on the "
        "mesh that is set; None: the compiler decides.",
        "key": "a random key, as from `random.key` or `random.split`; use each key once.",
        "is_leaf": "a function of a node; where it gives True the node counts as a leaf.",
    },
    "phalanx.api.watching": {
        "new_val": "the value of the option inside the block.",
    },
    "phalanx.api.contexts": {
        "enable": "whether the option is on inside the block.",
    },
    "phalanx.api.devices": {
        "backend": "a platform, such as `cpu` or `gpu`; None for the default one.",
    },
    "phalanx.base.dtypes": {
        "x": "what becomes an array of this dtype: a number, an array, or nested lists.",
    },
    "phalanx.base.tree": {
        "tree": "a tree: nested tuples, lists, dicts and registered classes, with leaves in them.",
        "cls": "the class; it is returned, so this is a decorator.",
        "is_leaf_takes_path": "whether `is_leaf` gets the path to the node as well, in front.",
    },
    "phalanx.core": {
        "x": "an array, a traced value, or a number.",
    },
    "phalanx.numpy": {
        "a": X,
        "x": X,
        "x1": PAIR,
        "x2": PAIR,
        "arr": "an array.",
        "where": WHERE,
        "keepdims": KEEPDIMS,
        "size": SIZE,
        "fill_value": FILL,
        "device": DEVICE,
        "axis1": "the first of the two axes.",
        "axis2": "the second.",
        "kind": "must be None: there is one algorithm, which is stable.",
        "order": 'must be None or "C".',
    },
    "phalanx.numpy.arithmetic": {
        "y": PAIR,
        "where": "must be None: there is no result to be left as it is.",
    },
    "phalanx.numpy.transcendental": {
        "y": PAIR,
        "where": "must be None: there is no result to be left as it is.",
    },
    "phalanx.numpy.logic": {
        "y": PAIR,
        "where": "must be None: there is no result to be left as it is.",
    },
    "phalanx.numpy.reductions": {
        "axis": "the axis or axes that are reduced, counted from the end if negative; None for "
        "all.",
        "initial": "a number that joins the elements; the result where there are none.",
    },
    "phalanx.numpy.statistics": {
        "axis": "the axis or axes that are reduced, counted from the end if negative; None for "
        "all.",
        "ddof": "what is taken off the number of elements before dividing by it: 1 for the "
        "unbiased variance of a sample.",
        "mean": "the mean, if it is known already, as `mean` gives it with `keepdims`.",
        "weights": "how much each element counts, of the shape of the array or a vector along the "
        "axis; None: all alike.",
        "overwrite_input": OVERWRITE,
        "q": "which parts, each from 0 to 1, or from 0 to 100 for percentiles; an array gives one "
        "result for each, in front.",
        "method": 'what lies between two elements: "linear", "lower", "higher", "midpoint" or '
        '"nearest".',
    },
    "phalanx.numpy.creation": {
        "count": "how many numbers to read; -1 for all.",
        "copy": "whether the result is a copy; arrays are immutable, so it is seldom of use.",
    },
    "phalanx.numpy.contraction": {
        "a": "an array.",
        "b": "an array whose dimensions fit.",
    },
    "phalanx.numpy.fft": {
        "a": "an array; its axes that are not transformed are a batch.",
        "n": "the length of the transform: the axis is cut to it, or filled up with zeros; None "
        "for the length that it has.",
        "s": "the lengths of the transform, for each of the axes; None for those that they have.",
        "axes": "the axes that are transformed; None for all, or the last ones if `s` is given.",
        "norm": 'where the factor 1/n stands: "backward", in the inverse; "forward"; or "ortho", '
        "as 1/√n in both.",
    },
    "phalanx.numpy.joining": {
        "ary": "the array to be taken apart.",
        "indices_or_sections": "into how many parts of one length; or a sequence of the indices "
        "at which new parts begin.",
        "tup": "a sequence of arrays.",
    },
    "phalanx.numpy.choice": {
        "rtol": "by how much of `b` they may differ.",
        "atol": "by how much they may differ besides, as a number.",
        "equal_nan": "whether nan counts as equal to nan.",
        "a1": "an array.",
        "a2": "the other array.",
    },
    "phalanx.numpy.selection": {
        "mode": "what an index outside of the axis means.",
        "inplace": "must be False: arrays are immutable, and the changed array is returned.",
    },
    "phalanx.numpy.shaping": {
        "m": "an array.",
        "arys": "arrays, or numbers.",
    },
    "phalanx.numpy.structured": {
        "k": "which diagonal: 0 for the main one, positive above it, negative below.",
        "offset": "which diagonal: 0 for the main one, positive above it, negative below.",
        "N": "the number of rows.",
        "M": "the number of columns; None for as many as rows.",
        "n": "the number of rows.",
        "m": "the number of columns; None for as many as rows.",
        "arr": "an array whose last two dimensions are the matrix.",
    },
    "phalanx.numpy.linalg": {
        "offset": "which diagonal: 0 for the main one, positive above it, negative below.",
    },
    "phalanx.numpy.factorizations": {
        "a": MATRIX_BATCH,
        "x": MATRIX_BATCH,
    },
    "phalanx.numpy.systems": {
        "a": MATRIX_BATCH,
    },
    "phalanx.numpy.search": {
        "order": "must be None: arrays have no fields.",
        "stable": "whether equal elements keep their order.",
        "descending": "whether the largest come first.",
        "ar1": "an array, taken as a set.",
        "ar2": "the other array.",
        "kth": "the position in the sorted order that is right; smaller elements are before it.",
    },
    "phalanx.numpy.printing": {
        "max_line_width": "after how many characters lines break; None for NumPy's option.",
        "suppress_small": "whether numbers close to 0 are written as 0.",
    },
    "phalanx.numpy.refs": {
        "ref": "a mutable reference.",
        "idx": "an index, as in `ref[idx]`; a tuple for several dimensions.",
    },
    "phalanx.lax": {
        "axis": "the dimension along which it works.",
        "x": X,
        "operand": "an array.",
        "axis_name": "the name of the axis, or a sequence of names.",
        "axis_index_groups": "a partition of the indices of the axis; lanes work within their "
        "group. None: all are one group.",
        "accuracy": "how accurate the result is: a `lax.Tolerance` or `lax.AccuracyMode`; None "
        "for the compiler's own.",
        "sharding": "where the result lies; None for the default device.",
    },
    "phalanx.lax.collective": {
        "x": "a tree of arrays, of one lane.",
    },
    "phalanx.lax.unary": {
        "x": "an array, or a number; the result has its shape and dtype.",
    },
    "phalanx.lax.binary": {
        "x": "an array, or a number.",
        "y": "an array of the same shape and dtype, or a number.",
    },
    "phalanx.lax.special": {
        "x": "floating-point numbers.",
        "a": "floating-point numbers, of the shape of `x`.",
    },
    "phalanx.lax.reduce": {
        "axes": "the dimensions that are reduced, a sequence of integers.",
        "reverse": "whether to go from the last element to the first.",
        "index_dtype": "the integer dtype of the result.",
    },
    "phalanx.lax.shape": {
        "dimensions": "which dimensions, a sequence of integers.",
    },
    "phalanx.lax.index": {
        "scatter_indices": "the positions: integers whose last dimension is one position.",
        "updates": "what is written, or combined with what is there.",
        "dimension_numbers": "which dimensions of `operand`, positions and `updates` belong "
        "together: a `lax.ScatterDimensionNumbers`.",
        "indices_are_sorted": "a promise that positions come in order, which may be faster.",
        "unique_indices": "a promise that no position occurs twice, which may be faster.",
        "mode": "what a position outside means: a `lax.GatherScatterMode`.",
        "allow_negative_indices": "whether negative positions count from the end.",
        "axis": "the dimension in which the position lies.",
    },
    "phalanx.lax.convolution": {
        "lhs": "the images: batch, features, and the dimensions that windows move over.",
        "rhs": "the kernel: features of the result and of the image, and the window.",
        "padding": 'zeros around the image: "SAME", "VALID", or a pair (low, high) for each '
        "dimension of the window.",
        "window_strides": "by how many elements the window moves, per dimension.",
        "lhs_dilation": "in how many steps an image element lies from the next, with zeros "
        "between.",
        "rhs_dilation": "the same for the kernel.",
        "lhs_shape": "the shape of the images.",
        "rhs_shape": "the shape of the kernel.",
        "dimension_numbers": "which dimension is which, in letters: of images, kernel, result.",
    },
    "phalanx.lax.shape_tuples": {
        "lhs_shape": "the shape of the images.",
        "rhs_shape": "the shape of the kernel.",
        "window_strides": "by how many elements the window moves, per dimension.",
        "padding": 'zeros around it: "SAME", "VALID", or a pair (low, high) for each dimension of '
        "the window.",
        "dimension_numbers": "which dimension is which, in letters: of images, kernel, result.",
    },
    "phalanx.nn": {
        "x": "an array.",
    },
    "phalanx.nn.initializers": {
        "in_axis": "the dimension, or dimensions, that inputs of the layer run along.",
        "out_axis": "the dimension, or dimensions, that its outputs run along.",
        "batch_axis": "dimensions that are neither: each of their elements is a weight of its "
        "own.",
    },
    "phalanx.scipy.special": {
        "x": X,
        "a": PAIR,
        "b": PAIR,
        "n": "integers.",
        "p": PAIR,
        "q": PAIR,
        "y": PAIR,
    },
    "phalanx.scipy.fft": {
        "x": "an array of real numbers.",
        "type": "must be 2, the usual one of the cosine transforms.",
        "norm": 'None, or "ortho" for orthonormal rows.',
        "s": "the lengths of the transform, for each of the axes; None for those that they have.",
        "axes": "the axes that are transformed; None for all.",
        "n": "the length of the transform: the axis is cut to it, or filled up with zeros.",
    },
    "phalanx.scipy.linalg": {
        "a": MATRIX_BATCH,
        "check_finite": CHECK_FINITE,
        "overwrite_a": OVERWRITE,
        "overwrite_b": OVERWRITE,
        "lower": "whether the lower triangle counts, and not the upper.",
        "n": "the number of rows and columns.",
    },
    "phalanx.scipy.stats": {
        "x": DENSITY_POINT,
        "k": "how many: integers, as an array, or a number.",
        "q": PROBABILITY,
        "p": PROBABILITY,
        "loc": LOC,
        "scale": SCALE,
    },
    "phalanx.experimental.sparse": {
        "mat": "a sparse array.",
        "self": "a sparse array.",
        "nse": "for how many entries there is room.",
        "index_dtype": "the integer dtype of the positions.",
        "sparse_format": "`bcoo` or `bcsr`.",
        "n_batch": "how many dimensions in front are a batch.",
        "n_dense": "how many dimensions at the end are dense.",
        "N": "the number of rows.",
        "M": "the number of columns; None for as many as rows.",
        "k": "which diagonal: 0 for the main one, positive above it, negative below.",
    },
    "phalanx.monitoring": {
        "callback": "the function; to be taken off, the same one that was registered.",
        "event": "the name of the event.",
        "kwargs": "what else to tell of it, handed to the functions that listen.",
    },
    "phalanx.example_libraries.optimizers": {
        "step_size": "the length of a step: a number, or a function of the number of the step.",
        "eps": "a small number that keeps the denominator from 0.",
        "decay_steps": "after how many steps the rate has decayed by its factor, or to its end.",
    },
    "phalanx.example_libraries.stax": {
        "strides": "by how many elements the window moves, per dimension; None: 1 in each.",
        "padding": '"SAME" or "VALID".',
        "W_init": "how the weights begin: a function of a key and a shape, as of "
        "`nn.initializers`.",
        "b_init": "how the biases begin, likewise.",
        "out_chan": "the number of features of the result.",
        "filter_shape": "the shape of the window.",
        "window_shape": "the shape of the window.",
        "spec": "which dimension is which, in letters, such as `NHWC`; None: this one.",
    },
}
