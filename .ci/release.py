"""`./dev release`: builds what is uploaded, tries it in fresh environments, and says what is left.

The source distribution is to hold every file of the repository, and the wheel the package alone.
The wheel is installed for each Python that there is from the oldest supported one on, without the
checkout in sight; the source distribution is unpacked, and some of its tests are run.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
SAID = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = SAID["project"]
VERSION = re.search(
    r'__version__ = "(.+)"', (ROOT / "phalanx/base/version.py").read_text(encoding="utf-8")
)[1]
PROGRAM = """
import phalanx, phalanx.numpy as jnp
from phalanx import lax
total = phalanx.pmap(lambda x: lax.psum(x, "i"), axis_name="i")(jnp.arange(4.0))
assert total.tolist() == [6.0] * 4, total
assert phalanx.grad(jnp.sin)(0.0) == 1.0
assert "site-packages" in phalanx.__file__, phalanx.__file__
print(phalanx.__version__)
"""


def run(*words: object, cwd: Path = ROOT) -> str:
    """What a command prints; the release ends where one fails."""
    done = subprocess.run([str(w) for w in words], cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return done.stdout


def say(text: str) -> None:
    print(text, flush=True)


def built() -> tuple[Path, Path]:
    """The source distribution, and the wheel that is built from it."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", DIST)
    (source,), (wheel,) = DIST.glob("*.tar.gz"), DIST.glob("*.whl")
    run(sys.executable, "-m", "twine", "check", "--strict", source, wheel)
    return source, wheel


def check_files(source: Path, wheel: Path) -> None:
    """Compare what was packed with what is in the repository."""
    tracked = set(run("git", "ls-files").split("\n")) - {""}
    with tarfile.open(source) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()} - {"PKG-INFO"}
    if packed != tracked:
        sys.exit(f"{source.name} and the repository differ in {sorted(packed ^ tracked)}")
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    wanted = {name for name in tracked if name.startswith("phalanx/")}
    wanted.update(SAID["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"].values())
    if inside != wanted:
        sys.exit(f"{wheel.name} and the package differ in {sorted(inside ^ wanted)}")
    say(f"{source.name}: {len(packed)} files, {source.stat().st_size / 1e6:.1f} MB")
    say(f"{wheel.name}: {len(inside)} files, {wheel.stat().st_size / 1e6:.1f} MB")


def try_wheel(python: str, wheel: Path, folder: Path) -> None:
    """Install the wheel in an environment of its own, and use it there."""
    run(python, "-m", "venv", folder / "venv", cwd=folder)
    here = folder / "venv" / "bin"
    run(here / "python", "-m", "pip", "install", "-q", wheel, cwd=folder)
    version = run(here / "python", "-c", PROGRAM, cwd=folder).split()[-1]
    run(here / "phalanx", "devices", cwd=folder)
    assert version == VERSION, (version, VERSION)
    say(f"{run(here / 'python', '--version', cwd=folder).strip()}: the wheel works")


def try_source(python: str, source: Path, folder: Path) -> None:
    """Unpack the source distribution, and run some of its tests as one does in a checkout."""
    with tarfile.open(source) as archive:
        archive.extractall(folder, filter="data")
    (unpacked,) = folder.glob("phalanx-*")
    tests = "tests/test_tiny.py", "tests/units/base"
    run("env", f"PYTHON={python}", "./dev", "test", *tests, "-q", cwd=unpacked)
    say(f"{source.name}: {' and '.join(tests)} pass where it is unpacked")


def left() -> list[str]:
    """What a release still needs, beside the files."""
    notes = []
    if run("git", "status", "--porcelain"):
        notes.append("commit what has been changed")
    if f"## [{VERSION}]" not in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"):
        notes.append(f"give CHANGELOG.md a section [{VERSION}], and the day")
    if f"version: {VERSION}\n" not in (ROOT / "CITATION.cff").read_text(encoding="utf-8"):
        notes.append(f"write version {VERSION} into CITATION.cff")
    if "urls" not in PROJECT:
        notes.append("add [project.urls], once repository and documentation have an address")
    relative = relative_links((ROOT / PROJECT["readme"]).read_text(encoding="utf-8"))
    if relative:  # the index shows the README, where it has none of our files
        notes.append(f"give {len(relative)} links of README.md an address, such as {relative[0]}")
    return [*notes, *name_is_ours(), f"git tag v{VERSION}"]


def relative_links(text: str) -> list[str]:
    """The links and pictures of a Markdown text that lead to files beside it."""
    return re.findall(r"\]\((?!https?://|#|mailto:)([^)\s]+)\)", text)


def name_is_ours() -> list[str]:
    """What to make sure of where the index knows the name already, or was not asked."""
    name = PROJECT["name"]
    asked = [sys.executable, "-m", "pip", "index", "versions", name]
    done = subprocess.run(asked, capture_output=True, text=True)
    if done.returncode == 0:
        return [f"the index has {done.stdout.splitlines()[0]}: make sure that it is ours"]
    if "No matching distribution" in done.stderr:
        return [f"the name {name} is free on the index: the upload takes it"]
    return [f"make sure that the name {name} is free on the index, or ours: it was not reached"]


def main() -> None:
    source, wheel = built()
    check_files(source, wheel)
    oldest = int(re.search(r">=3\.(\d+)", PROJECT["requires-python"])[1])
    pythons = [line.split() for line in run(".ci/pythons").splitlines()]
    pythons = [python for minor, python in pythons if int(minor) >= oldest]
    for python in pythons:
        with tempfile.TemporaryDirectory() as folder:
            try_wheel(python, wheel, Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        try_source(pythons[-1], source, Path(folder))
    say("\nWhat is left:")
    for note in left():
        say(f"- {note}")
    say(f"- twine upload {source.relative_to(ROOT)} {wheel.relative_to(ROOT)}")
    say("- upload build/site, which `./dev docs --build` makes, to where the documentation is")


if __name__ == "__main__":
    main()
