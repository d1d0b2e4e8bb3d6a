"""Whether the program runs in a notebook, which can show more than text."""

from __future__ import annotations

import sys


def in_notebook() -> bool:
    """Whether IPython runs as the kernel of a notebook.

    >>> in_notebook()
    False
    """
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return hasattr(shell, "kernel")
