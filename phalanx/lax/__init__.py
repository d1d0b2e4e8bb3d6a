"""Operations on arrays as primitives are: explicit about dtypes, shapes and dimensions.

``phalanx.numpy`` is the friendlier face of most of them. Here nothing is promoted implicitly;
only scalars adapt to the arrays beside them.
"""

from phalanx.base.lazily import later as _later

_TOKENS = "effects are in order by themselves: ordered ones as a program calls them"
_REFUSED = {
    "*_p": "it is one of the operations of programs, which are no functions to call; "
    "phalanx.primitives declares further ones",
    "after_all": _TOKENS,
    "create_token": _TOKENS,
    "dce_sink": "what nothing needs is not computed; return it, or give it to debug.callback",
    "psum_scatter_start": "the compiler starts a collective as early as it can; use psum_scatter",
}

_later(__name__, refused=_REFUSED)
