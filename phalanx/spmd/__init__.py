"""How arrays lie on devices. Knows devices only as opaque, hashable things."""
