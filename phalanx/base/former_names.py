"""Names that programs ask for, and what is here in their place.

NumPy and JAX once had them, or PyTorch and NumPy's global generator have them.
"""

FORMER_NAMES = {
    "NINF": "-numpy.inf", "NZERO": "-0.0", "NaN": "numpy.nan", "PINF": "numpy.inf", "PZERO": "0.0",
    "Inf": "numpy.inf", "infty": "numpy.inf", "alltrue": "numpy.all", "sometrue": "numpy.any",
    "product": "numpy.prod", "cumproduct": "numpy.cumprod", "in1d": "numpy.isin",
    "row_stack": "numpy.vstack", "msort": "numpy.sort(x, axis=0)", "round_": "numpy.round",
    "trapz": "numpy.trapezoid", "asfarray": "numpy.asarray(x, dtype=float)", "bool8": "numpy.bool_",
    "float_": "float", "complex_": "complex", "int0": "int",
    "find_common_type": "numpy.promote_types",
    "asscalar": "x.item()", "alen": "len(x)",
    "tree_map": "tree.map", "tree_multimap": "tree.map", "tree_leaves": "tree.leaves",
    "tree_flatten": "tree.flatten", "tree_unflatten": "tree.unflatten", "tree_all": "tree.all",
    "tree_structure": "tree.structure", "tree_reduce": "tree.reduce",
    "tree_transpose": "tree.transpose", "treedef_is_leaf": "tree_util.treedef_is_leaf",
    "PRNGKeyArray": "Array, with dtypes.prng_key", "KeyArray": "Array, with dtypes.prng_key",
    "threefry_2x32": "random.bits", "to_dlpack": "x.__dlpack__(), or numpy.from_dlpack(x) there",
    "xla_computation": "jit(f).lower(*args).as_text()", "xmap": "pmap, or vmap with axis_name",
    "ShapedArray": "ShapeDtypeStruct", "ArrayRef": "Ref", "MutableArray": "Ref",
    "custom_transforms": "custom_jvp, or custom_vjp", "defvjp_all": "custom_vjp",
    "AttributeKeyPathEntry": "tree_util.GetAttrKey",
    "register_keypaths": "tree_util.register_pytree_with_keys",
    "JAXRuntimeError": "errors.JaxRuntimeError",
    "DeviceLocalLayout": "experimental.layout.Layout",
    "soft_pmap": "pmap, whose axis may have any size",
    # of PyTorch
    "tensor": "numpy.array", "Tensor": "Array", "cat": "numpy.concatenate",
    "compile": "jit", "no_grad": "lax.stop_gradient", "autograd": "grad", "device": "devices",
    "cuda": "devices", "manual_seed": "random.key",
    "optim": "example_libraries.optimizers, or optax",
    "Linear": "example_libraries.stax, or flax or equinox",
    "Module": "example_libraries.stax, or flax or equinox",
    "functional": "nn.relu, and the other functions of nn",
    "all_reduce": "lax.psum", "reduce_scatter": "lax.psum_scatter",
    "init_process_group": "distributed.initialize", "get_rank": "process_index",
    "get_world_size": "process_count",
    "barrier": "experimental.multihost_utils.sync_global_devices",
    # of NumPy's generator
    "seed": "random.key", "rand": "random.uniform", "randn": "random.normal",
    "shuffle": "random.permutation", "default_rng": "random.key",
}  # fmt: skip

FORMER_KEYWORDS = {
    "a_min": "'min'", "a_max": "'max'", "newshape": "'shape'", "check_rep": "'check_vma'",
    "reduce_axes": "lax.psum of the gradient", "dim": "'axis'", "keepdim": "'keepdims'",
}  # fmt: skip
