"""The seed of a run: by default that of the commit and of the Python.

So all who have both try the same cases, and a commit that is tested on two Pythons tries more.
"""

import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def of_this_run(root=ROOT):
    return (of_the_commit(root) + sys.version_info.minor) % 2**32


def of_the_commit(root=ROOT):
    """A number that follows from the tree of HEAD; without git, from the sources themselves."""
    try:
        asked = ["git", "rev-parse", "--show-prefix", "HEAD^{tree}"]
        told = subprocess.run(asked, cwd=root, capture_output=True, text=True, check=True).stdout
        prefix, tree = told.splitlines()
    except (OSError, subprocess.CalledProcessError):
        prefix, tree = None, None
    if prefix != "":  # unpacked in somebody else's repository, or in none
        tree = of_files(root)
    return int(tree[:8], 16)


def of_files(root):
    digest = hashlib.sha256()
    for path in sorted([*root.glob("phalanx/**/*.py"), *root.glob("tests/**/*.py")]):
        digest.update(f"{path.relative_to(root).as_posix()}\0".encode() + path.read_bytes())
    return digest.hexdigest()
