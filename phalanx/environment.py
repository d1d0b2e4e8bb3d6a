"""What this program runs on."""

from __future__ import annotations

import platform
import sys

import numpy as np

from phalanx import __version__
from phalanx.api.devices import devices, local_device_count, process_count
from phalanx.base.boundary import bound
from phalanx.xla import VERSION

__all__ = ["print_environment_info"]


def print_environment_info(return_string: bool = False) -> str | None:
    """Print versions, devices and the machine, for reports of errors.

    Args:
        return_string: return the text instead.

    Returns:
        The text with ``return_string``, else None.

    >>> print(print_environment_info(return_string=True).split(":")[0])
    phalanx
    """
    kinds = [d.device_kind for d in devices()]
    counts = ", ".join(f"{kinds.count(kind)} of {kind}" for kind in dict.fromkeys(kinds))
    lines = {
        "phalanx": __version__,
        "jaxlib": ".".join(map(str, VERSION)),
        "numpy": np.__version__,
        "python": sys.version.replace("\n", " "),
        "devices": f"{counts}; {local_device_count()} of this process",
        "processes": str(process_count()),
        "platform": platform.platform(),
    }
    text = "\n".join(f"{name + ':':<11}{value}" for name, value in lines.items())
    if return_string:
        return text
    print(text)
    return None


bound(sys.modules[__name__])
