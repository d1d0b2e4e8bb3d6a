"""Connects the packages: gives each what it takes of those above it, once, before they are used.

What is imported for its effect alone declares primitives, is the public place of classes that
other functions make, or says which backend there is. The rest waits until somebody asks for it.
"""

# importing is what it is for:
# pyright: reportUnusedImport=false

import numpy as np  # noqa: F401  (whole, before who asks for a part of it, as a thread may)

import phalanx
from phalanx import (
    ad_checkpoint,
    custom_derivatives,
    debug,
    dtypes,  # noqa: F401
    errors,  # noqa: F401
    lax,
    memory,  # noqa: F401
    numpy,
    ops,
    primitives,
    ref,
    sharding,  # noqa: F401
    stages,  # noqa: F401
    tree,
    tree_util,
)
from phalanx.api import devices  # noqa: F401
from phalanx.api.jax_attributes import install as install_attributes
from phalanx.api.positions import sharding_of_type
from phalanx.base.boundary import bound
from phalanx.base.config import config
from phalanx.control import mapped, spanned  # noqa: F401
from phalanx.core.trace import ROOT
from phalanx.core.types import Array, ArrayType
from phalanx.numpy.at import Part
from phalanx.numpy.methods import install
from phalanx.numpy.refs import install as install_refs
from phalanx.primitives import hypot, incomplete  # noqa: F401
from phalanx.run.eager import evaluate_eagerly
from phalanx.run.reshard_array import reshard_array
from phalanx.spmd.shardings_of_types import mesh_spec_of

ROOT.evaluate, ROOT.reshard = evaluate_eagerly, reshard_array
ArrayType.to_sharding = staticmethod(sharding_of_type)
ArrayType.of_sharding = staticmethod(mesh_spec_of)
install(Array, numpy)
install_refs()
install_attributes()

bound(debug, lax, numpy, ops, primitives, ref, tree, tree_util)
bound(Part, type(config), phalanx)
bound(ad_checkpoint, custom_derivatives)
