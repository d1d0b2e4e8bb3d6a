"""Eight CPU devices, unless the environment says otherwise, and what changes from run to run.

One seed chooses the programs that Hypothesis draws and, with ``--sample``, the part of the tests
that a run takes (``tests/selection.py``). It is that of the commit and the Python
(``tests/seeds.py``) unless an option gives another, and the report begins with it.
PHALANX_HYPOTHESIS=heavy draws more programs.
"""

import gc
import importlib
import os
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings

from tests import seeds
from tests.selection import checked, optimized, selected

os.environ.setdefault("PHALANX_NUM_CPU_DEVICES", "8")
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")
os.environ.setdefault("PHALANX_TRACEBACK_FILTERING", "off")  # where a test fails, all is shown

COMMON = {"deadline": None, "suppress_health_check": list(HealthCheck), "print_blob": True}
# Runs with other numbers of devices repeat some of what is drawn.
DRAWN = 4 if os.environ["PHALANX_NUM_CPU_DEVICES"] == "8" else 2
FEW = {"max_examples": DRAWN, "database": None, "phases": [Phase.generate]}

settings.register_profile("few", **FEW, **COMMON)
settings.register_profile("heavy", max_examples=300, **COMMON)
settings.load_profile(os.environ.get("PHALANX_HYPOTHESIS", "few"))


def pytest_addoption(parser):
    parser.addoption(
        "--sample",
        action="store_true",
        help="of the laws and oracles, and of the compiler's optimizations, a part that a seed "
        "chooses",
    )


@pytest.hookimpl(tryfirst=True)  # before Hypothesis looks at the option
def pytest_configure(config):
    given = config.option.hypothesis_seed
    if given is None:
        from_parent = getattr(config, "workerinput", {})
        given = from_parent["seed"] if "seed" in from_parent else seeds.of_this_run()
    config.option.hypothesis_seed = int(given)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    """The workers of pytest-xdist have the seed of the process that started them."""
    node.workerinput["seed"] = node.config.option.hypothesis_seed


def pytest_report_header(config):
    return f"the draws of this run: --hypothesis-seed={config.option.hypothesis_seed}"


def pytest_ignore_collect(collection_path, config):
    """With ``-m spmd``, files in which nothing is marked so are not imported: it takes long."""
    if config.option.markexpr == "spmd" and collection_path.suffix == ".py":
        places = collection_path, collection_path.with_name("conftest.py")
        if not any("mark.spmd" in p.read_text("utf-8") for p in places if p.exists()):
            return True
    return None


def pytest_collection_modifyitems(config, items):
    if not config.option.sample:
        return
    kept = selected(items, config.option.hypothesis_seed)
    left = set(items).difference(kept)
    items[:] = kept
    config.hook.pytest_deselected(items=list(left))


@pytest.fixture(autouse=True, scope="module")
def _compiled(request):
    """With ``--sample``, most modules do without what makes programs fast and compiling slow, and
    without checks of programs between passes."""
    # Imported here, not above: the environment that the tests set must come first.
    config = importlib.import_module("phalanx").config
    options = request.config.option
    drawn = request.node, options.hypothesis_seed
    quick = options.sample and not optimized(*drawn)
    before = config.disable_most_optimizations, config.enable_checks
    config.update("disable_most_optimizations", quick or before[0])
    config.update("enable_checks", not options.sample or checked(*drawn) or before[1])
    yield
    config.update("disable_most_optimizations", before[0])
    config.update("enable_checks", before[1])


START = np.random.default_rng(0).bit_generator.state


@pytest.fixture(autouse=True)
def _numbers_of_its_own(request):
    """A test draws the same from the generators of its module whatever ran before it."""
    for value in vars(request.module).values():
        if isinstance(value, np.random.Generator):
            value.bit_generator.state = START


MANY_MAPS = 25_000  # of the 65,530 that Linux gives to a process


@pytest.fixture(autouse=True, scope="module")
def _collected():
    """What other modules leave is out of the collector's sight: it would look at all of it again
    in each test that calls the collector. What they compiled goes when it takes many maps of
    memory, also that of the peer, which does not count them."""
    if importlib.import_module("phalanx.xla.mmap_limit").maps_in_use() > MANY_MAPS:
        for library in filter(None, map(sys.modules.get, ("phalanx", "jax"))):
            library.clear_caches()
        gc.unfreeze()
    gc.collect()
    gc.freeze()


@pytest.fixture
def x64():
    """Numbers of 64 bits: what tests compare rounds differently, which derivatives make more of."""
    with importlib.import_module("phalanx").enable_x64(True):
        yield


@pytest.fixture
def as_users_have_it():
    """Tracebacks without the frames of the library, which tests see otherwise."""
    config = importlib.import_module("phalanx").config
    before = config.traceback_filtering
    config.update("traceback_filtering", "auto")
    yield
    config.update("traceback_filtering", before)


@pytest.fixture
def collector_off():
    """What dies meanwhile dies because nobody refers to it."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()
