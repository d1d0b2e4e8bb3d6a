"""Trees, as jaxlib takes them apart and puts them together.

Everything that takes trees stands on this module, the packages below this one included. So it
imports nothing of ours, and jaxlib without its runtime.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxlib import _jax

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    class PyTreeDef:
        """The structure of a tree: what is left of it without its leaves.

        Structures are equal if the trees are alike but for their leaves, can be parts of keys,
        and can be pickled if the classes of their nodes can be found.

        Attributes:
            num_leaves: the number of leaves.
            num_nodes: the number of nodes, leaves included.
            unflatten: a method: the tree of leaves in order.
            children: a method: the structures of the children.
            node_data: a method: the class of the outermost node and what it keeps besides its
                children, such as the keys of a dict; None of a leaf.

        >>> import phalanx
        >>> structure = phalanx.tree.structure({"a": 1, "b": (2, None)})
        >>> structure.num_leaves, structure.unflatten([3, 4])
        (2, {'a': 3, 'b': (4, None)})
        """

        num_leaves: int
        num_nodes: int

        def unflatten(self, leaves: Iterable[Any], /) -> Any: ...
        def flatten_up_to(self, tree: Any) -> list[Any]: ...
        def children(self) -> list[PyTreeDef]: ...
        def node_data(self) -> tuple[type, Any] | None: ...

    class DictKey:
        """The step from a dict to the value under ``key``.

        Args:
            key: the key in the dict.

        >>> from phalanx import tree_util
        >>> tree_util.tree_leaves_with_path({"a": 1.0})[0][0]
        (DictKey(key='a'),)
        """

        __match_args__: tuple[str]
        key: Any

        def __init__(self, key: Hashable) -> None: ...

    class SequenceKey:
        """The step from a tuple or list to element ``idx``.

        Args:
            idx: the position in a list or tuple.

        >>> from phalanx import tree_util
        >>> tree_util.tree_leaves_with_path([1.0])[0][0]
        (SequenceKey(idx=0),)
        """

        __match_args__: tuple[str]
        idx: int

        def __init__(self, idx: int) -> None: ...

    class GetAttrKey:
        """The step from an object to its attribute ``name``.

        Args:
            name: the name of the attribute.

        >>> from phalanx import tree_util
        >>> tree_util.keystr((tree_util.GetAttrKey("weights"),))
        '.weights'
        """

        __match_args__: tuple[str]
        name: str

        def __init__(self, name: str) -> None: ...

    class FlattenedIndexKey:
        """The step from an object that does not name its children to child number ``key``.

        Args:
            key: the number of the child.

        >>> from phalanx import tree_util
        >>> tree_util.FlattenedIndexKey(2).key
        2
        """

        __match_args__: tuple[str]
        key: int

        def __init__(self, key: int) -> None: ...

    class PyTreeRegistry:
        __name__: str

        def flatten(
            self, tree: Any, is_leaf: Callable[[Any], bool] | None = None, /
        ) -> tuple[list[Any], PyTreeDef]: ...
        def flatten_with_path(
            self, tree: Any, is_leaf: Callable[[Any, Any], bool] | None = None, /
        ) -> tuple[list[tuple[tuple[Any, ...], Any]], PyTreeDef]: ...
        def flatten_one_level(self, tree: Any) -> tuple[Iterable[Any], Any] | None: ...
        def is_node(self, kind: type, /) -> bool: ...
        def register_node(
            self,
            type: type,
            to_iterable: Callable[[Any], tuple[Iterable[Any], Any]],
            from_iterable: Callable[[Any, Any], Any],
            to_iterable_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]]
            | None = None,
        ) -> None: ...
        def register_dataclass_node(
            self, type: type, data_fields: Sequence[str], meta_fields: Sequence[str], /
        ) -> None: ...

    def treedef_tuple(registry: PyTreeRegistry, treedefs: Sequence[PyTreeDef]) -> PyTreeDef: ...

else:
    DictKey = _jax.pytree.DictKey
    FlattenedIndexKey = _jax.pytree.FlattenedIndexKey
    GetAttrKey = _jax.pytree.GetAttrKey
    PyTreeDef = _jax.pytree.PyTreeDef
    PyTreeRegistry = _jax.pytree.PyTreeRegistry
    SequenceKey = _jax.pytree.SequenceKey
    treedef_tuple = _jax.pytree.treedef_tuple
