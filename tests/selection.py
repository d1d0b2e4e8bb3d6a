"""What a run with ``--sample`` leaves out: cases of statements, and optimizing what it compiles.

Of laws and oracles it takes each statement once, and a share of its other cases; of the units, the
stories and the examples of docstrings, a share of the functions, and for those that have many cases
it does the same.

The laws of the primitives, of the sub-programs, of captured values, of NaN, of mistakes, of types
and of contexts, the oracles, and the tests of primitives, of control flow, of transformations, and
of exported, sparse and Taylor-expanded functions state few things of many cases, most of which XLA
compiles.
What laws and oracles state is checked in every run, in one case at least; which case, and which
others besides, changes with the seed, as do the units, stories and examples that a run takes. The
programs of the tutorial run always; so do all units of primitives, in one case at least.

Most of the time goes to XLA's optimizations, of small programs that run once. A share of the
modules, which changes with the seed too, has its programs optimized, as those of users are.
"""

import hashlib

SAMPLED = (
    "tests/laws/test_64_bits_without_the_option", "tests/laws/test_captures",
    "tests/laws/test_choices_in_fusions", "tests/laws/test_complex_slopes",
    "tests/laws/test_contexts", "tests/laws/test_dtypes_of_drawn_numbers",
    "tests/laws/test_explicit_axes", "tests/laws/test_exported", "tests/laws/test_growth",
    "tests/laws/test_jit_shardings", "tests/laws/test_methods",
    "tests/laws/test_mistakes", "tests/laws/test_nan",
    "tests/laws/test_operations", "tests/laws/test_platforms", "tests/laws/test_primitives",
    "tests/laws/test_sized.py", "tests/laws/test_sizes.py",
    "tests/laws/test_slopes_of_all_sizes", "tests/laws/test_subprograms",
    "tests/oracles/", "tests/laws/test_tangents_kept", "tests/laws/test_unreduced",
    "tests/laws/test_weak_types", "tests/units/api/test_export", "tests/units/api/test_symbolic",
    "tests/units/compat/test_served_names", "tests/units/control/",
    "tests/units/experimental/test_jet", "tests/units/experimental/test_sparse",
    "tests/units/insight/checks/test_held_out",
    "tests/units/lax/", "tests/units/primitives/", "tests/units/transforms/",
)  # fmt: skip
SHARE = 0.1
IN_PART = "phalanx/", "tests/stories/", "tests/units/"
ALWAYS = "tests/stories/test_acceptance", "tests/stories/tutorial", "tests/units/primitives/"
FUNCTIONS = 0.5  # of those in what is taken in part
OPTIMIZED = 0.2
CHECKED = 0.1
# Oracles also say how accurate numbers are that users get. Derivatives of extrema compare values of
# which the compiler may round another copy otherwise, and does so mostly where it optimizes little.
# XLA's counts are of what it runs: with few optimizations some releases write scatters as loops.
# Bits are compared with those of processes, which have their own options.
ACCURATE = (
    "tests/oracles/", "tests/laws/test_operations.py", "tests/laws/test_pmap_law.py",
    "tests/laws/test_slopes_of_all_sizes.py", "tests/stories/test_elastic.py",
    "tests/laws/test_reproducible_over_processes.py", "tests/stories/test_reproducible.py",
)  # fmt: skip
SUBJECTS = ("law", "name", "f")  # parameters that name what is tested; others are cases of it


def selected(items, seed):
    """The ``items`` of a run: all tests that are not sampled; of each statement of the others the
    case that ``seed`` draws first, and a share of its other cases. Some folders are taken in part.
    """
    least = {}
    for item in filter(is_sampled, items):
        least[statement(item)] = min(draw(item.nodeid, seed), least.get(statement(item), 1))

    def is_taken(item):
        function = item.nodeid.split("[")[0]
        in_part = item.nodeid.startswith(IN_PART) and not item.nodeid.startswith(ALWAYS)
        if in_part and draw(function, seed) > FUNCTIONS:
            return False
        if not is_sampled(item):
            return True
        return draw(item.nodeid, seed) <= max(SHARE, least[statement(item)])

    return list(filter(is_taken, items))


def optimized(module, seed):
    """Whether the programs of the tests in ``module`` are compiled as those of users are."""
    return module.nodeid.startswith(ACCURATE) or draw(module.nodeid, seed) < OPTIMIZED


def checked(module, seed):
    """Whether programs are checked as the tests in ``module`` trace them and after each pass."""
    return draw(f"{module.nodeid} checked", seed) < CHECKED


def is_sampled(item):
    """Whether the test is one of those that are too many."""
    return item.nodeid.startswith(SAMPLED)


def statement(item):
    """What a test states and of what: its function, and the subjects among its parameters."""
    params = item.callspec.params if hasattr(item, "callspec") else {}
    subjects = tuple(label(params[p]) for p in SUBJECTS if p in params)
    return item.nodeid.split("[")[0], *subjects


def label(subject):
    """The name of a primitive or of a function; a string is its own."""
    return getattr(subject, "name", None) or getattr(subject, "__name__", subject)


def draw(what, seed):
    """A number in [0, 1) that depends on ``what`` and the seed alone: the same in every worker."""
    digest = hashlib.sha256(f"{seed} {what}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64
