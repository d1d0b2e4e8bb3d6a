"""Says what is installed in another version than a file of `.ci/locks` has it."""

import importlib.metadata
import sys
from pathlib import Path

for line in Path(sys.argv[1]).read_text().split():
    name, _, pinned = line.partition("==")
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:  # of another extra
        continue
    if version != pinned:
        print(f"{name} {version}, not {pinned}")
