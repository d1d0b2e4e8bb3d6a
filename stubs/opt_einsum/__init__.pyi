from collections.abc import Sequence
from typing import Any

def get_symbol(i: int) -> str: ...
def contract_path(
    subscripts: str,
    *shapes: Sequence[int],
    optimize: Any = ...,
    **options: bool,
) -> tuple[list[tuple[int, ...]], Any]: ...
