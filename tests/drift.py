"""``./dev drift``: in what another jax and jaxlib differ from those whose names are ours.

A census is taken in the environment of either: modules, their names, the parameters of functions;
of private modules and of jaxlib what Phalanx serves or uses. What differs is printed, with a star
where something is to be done: what is new and not here, what is gone and still here.
"""

import argparse
import importlib
import json
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

from tests.census import imported, parameters

ROOT = Path(__file__).parents[1]


def differences(before, after, is_here):
    """Lines; ``is_here`` says whether Phalanx has a module, a name of it, a parameter of that."""
    for module in sorted({*before["modules"]} ^ {*after["modules"]}):
        yield line(f"module {module}", module in after["modules"], is_here(module))
    for module in sorted({*before["public"]} & {*after["public"]}):
        yield from of_module(module, before["public"][module], after["public"][module], is_here)
    for module, listed in before["private"].items():
        gone = sorted({*listed} - {*after["private"].get(module, ())})
        yield from (line(f"{module}.{n}", False, True) for n in gone if is_here(module, n))
    for name in sorted({*before["jaxlib"]} - {*after["jaxlib"]}):
        yield line(name, False, True)


def of_module(module, was, now, is_here):
    for name in sorted({*was} ^ {*now}):
        yield line(f"{module}.{name}", name in now, is_here(module, name))
    for name in sorted({*was} & {*now}):
        told = was[name] is not None and now[name] is not None
        for each in sorted({*was[name]} ^ {*now[name]}) if told else ():
            here = is_here(module, name, each)
            yield line(f"{module}.{name}({each}=)", each in now[name], here)


def line(what, is_new, is_here):
    star = "*" if is_new != is_here else " "
    return f"{star} {'new' if is_new else 'gone'}, {'here' if is_here else 'not here'}: {what}"


def is_served(module, name=None, parameter=None):
    """Whether the tree that Phalanx serves has the module, the name in it, its parameter."""
    found = imported(module)
    value = getattr(found, name, None) if found and name else found
    if value is None or parameter is None:
        return value is not None
    listed = parameters(value)
    return listed is None or parameter in listed


def of(python):
    """The census of the environment of a Python."""
    words = [python, "-P", "tests/census.py"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("python", help="of the environment to compare with this one")
    before, after = of(sys.executable), of(parser.parse_args().python)
    finder = importlib.import_module("phalanx.compat.serving").FINDER
    sys.meta_path.insert(0, finder)
    found = list(differences(before, after, is_served))
    print(f"from {before['versions']} to {after['versions']}:", *found, sep="\n")
    outside = left_out(after["versions"]["jaxlib"])
    open_ends = sum(each.startswith("*") for each in found)
    print(f"{len(found)} differences, {open_ends} of them to be looked at (*). {outside}".rstrip())
    sys.exit(bool(open_ends or outside))


def left_out(version):
    """Whether the range of our own requirement leaves out a version of jaxlib, in words."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (range_,) = [r for r in map(Requirement, project["dependencies"]) if r.name == "jaxlib"]
    inside = range_.specifier.contains(version, prereleases=True)
    return "" if inside else f"pyproject.toml leaves it out: {range_}"


if __name__ == "__main__":
    main()
