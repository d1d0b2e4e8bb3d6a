"""Names that programs ask for, and what is here in their place.

NumPy and JAX once had them, or PyTorch and NumPy's global generator have them.
"""

FORMER_NAMES = {  # and where it is now, below the package
    "PINF": "numpy.inf", "infty": "numpy.inf",
    "alltrue": "numpy.all", "sometrue": "numpy.any", "product": "numpy.prod",
    "cumproduct": "numpy.cumprod", "in1d": "numpy.isin", "row_stack": "numpy.vstack",
    "trapz": "numpy.trapezoid", "bool8": "numpy.bool_",
    "find_common_type": "numpy.promote_types", "matrix": "numpy.asarray", "mat": "numpy.asarray",
    "asmatrix": "numpy.asarray", "inverse": "numpy.linalg.inv", "scatter_sum": "lax.scatter_add",
    "tree_multimap": "tree.map", "multimap": "tree.map",
    "treedef_is_leaf": "tree_util.treedef_is_leaf",
    "DeviceArray": "Array", "ShapedArray": "ShapeDtypeStruct", "ArrayRef": "Ref",
    "MutableArray": "Ref", "threefry_2x32": "random.bits", "defvjp_all": "custom_vjp",
    "AttributeKeyPathEntry": "tree_util.GetAttrKey",
    "register_keypaths": "tree_util.register_pytree_with_keys",
    "JAXRuntimeError": "errors.JaxRuntimeError",
    "DeviceLocalLayout": "experimental.layout.Layout",
    # of PyTorch
    "tensor": "numpy.array", "Tensor": "Array", "cat": "numpy.concatenate",
    "unsqueeze": "numpy.expand_dims", "compile": "jit", "no_grad": "lax.stop_gradient",
    "autograd": "grad", "backward": "grad", "device": "devices", "cuda": "devices",
    "manual_seed": "random.key", "layer_norm": "nn.standardize", "all_reduce": "lax.psum",
    "reduce_scatter": "lax.psum_scatter", "init_process_group": "distributed.initialize",
    "get_rank": "process_index", "get_world_size": "process_count",
    "barrier": "experimental.multihost_utils.sync_global_devices",
    # of NumPy's generator
    "seed": "random.key", "rand": "random.uniform", "randn": "random.normal",
    "shuffle": "random.permutation", "default_rng": "random.key",
}  # fmt: skip

_SERVED = "after phalanx.as_jax.install()"  # which they need to run on Phalanx
_LAYERS = f"example_libraries.stax, or flax or equinox {_SERVED}"

FORMER_WAYS = {  # and in which way one does now what they did
    "NINF": "-jnp.inf", "NZERO": "-0.0", "PZERO": "0.0", "msort": "jnp.sort(x, axis=0)",
    "asfarray": "jnp.asarray(x, dtype=float)", "float_": "float", "complex_": "complex",
    "float": "float, or jnp.float32", "complex": "complex, or jnp.complex64",
    "int": "int, or jnp.int32", "int0": "int", "asscalar": "x.item()", "alen": "len(x)",
    "view": "x.view(dtype)",
    "seterr": "config.update('debug_nans', True)", "errstate": "debug_nans(True)",
    "PRNGKeyArray": "Array, with dtypes.prng_key", "KeyArray": "Array, with dtypes.prng_key",
    "to_dlpack": "x.__dlpack__(), or jnp.from_dlpack(x) there",
    "xla_computation": "jit(f).lower(*args).as_text(), or .compiler_ir('hlo')",
    "xmap": "pmap, or vmap with axis_name",
    "custom_transforms": "custom_jvp, or custom_vjp",
    "soft_pmap": "pmap, whose axis may have any size",
    "index_update": "x.at[index].set(y)", "index_add": "x.at[index].add(y)",
    "partial": "functools.partial, or tree_util.Partial",
    "optim": f"example_libraries.optimizers, or optax {_SERVED}", "Linear": _LAYERS,
    "Dense": _LAYERS, "Conv": _LAYERS, "Conv1d": _LAYERS, "Conv2d": _LAYERS, "Embedding": _LAYERS,
    "BatchNorm": _LAYERS, "LayerNorm": _LAYERS, "Dropout": _LAYERS, "Sequential": _LAYERS,
    "DataLoader": "any iterator of NumPy arrays, such as PyTorch's DataLoader with a collate_fn",
    "data": "any iterator of NumPy arrays; training.even_batches divides rows among processes",
    "profile": "profiler.trace(folder), or on the command line: phalanx profile script.py",
    "Module": _LAYERS, "functional": "nn.relu, and the other functions of nn",
    "save": "experimental.checkpoint.save for a tree, numpy.save for one array",
    "load": "experimental.checkpoint.restore for a tree, numpy.load for one array",
    "save_checkpoint": "experimental.checkpoint.save",
    "restore_checkpoint": "experimental.checkpoint.restore",
    "dropout": "jnp.where, with random.bernoulli",
    "cross_entropy": "training.cross_entropy", "CrossEntropyLoss": "training.cross_entropy",
    "TrainState": "training.TrainState", "DistributedSampler": "training.even_batches",
}  # fmt: skip

FORMER_KEYWORDS = {  # and the keywords now, of functions that have them
    "a_min": "min", "a_max": "max", "newshape": "shape", "check_rep": "check_vma", "dim": "axis",
    "keepdim": "keepdims", "num_points": "num", "num_keys": "num", "wrt": "argnums",
    "axis_shapes": "axis_sizes",
    "size": "shape", "low": "minval", "high": "maxval", "axis": "in_axes axis_name",
}  # fmt: skip

REPLACED_KEYWORDS = {
    "requires_grad": "phalanx.grad(f)",
    "unbiased": "ddof=1, or ddof=0", "concrete": "static_argnums",
}  # fmt: skip
