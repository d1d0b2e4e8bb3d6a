"""What the xla room uses of jaxlib, and of its versions from 0.10.2 on alike."""

__file__: str
