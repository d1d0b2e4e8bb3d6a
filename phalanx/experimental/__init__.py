"""Names that other libraries of this kind keep in a place of this name."""

from phalanx.base.lazily import later as _later

_later(
    __name__,
    refused={"pallas": "write the kernel with numpy and lax, which the compiler fuses"},
)
