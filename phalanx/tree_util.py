"""Trees of arrays under the names that start with ``tree_``, and how to register classes."""

from phalanx.base.nodes import (
    KeyEntry,
    KeyPath,
    all_leaves,
    flatten_one_level,
    flatten_one_level_with_keys,
    is_tree_node,
    treedef_children,
    treedef_is_leaf,
    treedef_tuple,
)
from phalanx.base.nodes import reduce_associative as tree_reduce_associative
from phalanx.base.nodes import transpose as tree_transpose
from phalanx.base.registry import NODES as default_registry
from phalanx.base.registry import (
    Partial,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
)
from phalanx.base.tree import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    PyTreeDef,
    SequenceKey,
    keystr,
)
from phalanx.base.tree import all as tree_all
from phalanx.base.tree import broadcast as tree_broadcast
from phalanx.base.tree import flatten as tree_flatten
from phalanx.base.tree import flatten_with_path as tree_flatten_with_path
from phalanx.base.tree import leaves as tree_leaves
from phalanx.base.tree import leaves_with_path as tree_leaves_with_path
from phalanx.base.tree import map as tree_map
from phalanx.base.tree import map_with_path as tree_map_with_path
from phalanx.base.tree import reduce as tree_reduce
from phalanx.base.tree import structure as tree_structure
from phalanx.base.tree import unflatten as tree_unflatten

__all__ = [
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "Partial",
    "PyTreeDef",
    "SequenceKey",
    "all_leaves",
    "default_registry",
    "flatten_one_level",
    "flatten_one_level_with_keys",
    "is_tree_node",
    "keystr",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "tree_all",
    "tree_broadcast",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_with_path",
    "tree_reduce",
    "tree_reduce_associative",
    "tree_structure",
    "tree_transpose",
    "tree_unflatten",
    "treedef_children",
    "treedef_is_leaf",
    "treedef_tuple",
]
