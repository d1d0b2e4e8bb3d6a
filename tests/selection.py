"""What a run with ``--sample`` leaves out: cases of statements, and optimizing what it compiles.

Of tests that state few things of many cases, most of which XLA compiles, it takes each statement
once, and a share of its other cases. These are oracles, most laws, and the units and stories with
such cases. Which case that is, and which others besides, changes with the seed.

Of what takes long and says again, of larger programs, what other laws state, it takes a part of the
statements; and so of units, stories, examples of docstrings and pages, which are many. The law of
``pmap``, README and the programs of the tutorial run always; so do all units of primitives, in one
case at least.

Most of the time goes to XLA's optimizations, of small programs that run once. A share of the
modules, which changes with the seed too, has its programs optimized, as those of users are.
"""

import hashlib

SAMPLED = (
    "tests/laws/test_64_bits_without_the_option", "tests/laws/test_captures",
    "tests/laws/test_choices_in_fusions", "tests/laws/test_complex_slopes",
    "tests/laws/test_constants", "tests/laws/test_contexts",
    "tests/laws/test_dtypes_of_drawn_numbers", "tests/laws/test_explicit_axes",
    "tests/laws/test_exported", "tests/laws/test_groups", "tests/laws/test_growth",
    "tests/laws/test_hostile_names", "tests/laws/test_jit_shardings",
    "tests/laws/test_loops_over_sums", "tests/laws/test_methods", "tests/laws/test_mistakes",
    "tests/laws/test_nan", "tests/laws/test_narrow_dtypes", "tests/laws/test_nested",
    "tests/laws/test_operations", "tests/laws/test_platforms", "tests/laws/test_primitives",
    "tests/laws/test_refs", "tests/laws/test_reproducible", "tests/laws/test_shard_map",
    "tests/laws/test_sized.py", "tests/laws/test_sizes.py", "tests/laws/test_slopes_in_shard_map",
    "tests/laws/test_slopes_of_all_sizes", "tests/laws/test_static_values",
    "tests/laws/test_strict_promotion", "tests/laws/test_subprograms",
    "tests/laws/test_symbolic_lengths", "tests/laws/test_tangents_kept",
    "tests/laws/test_uneven_cuts", "tests/laws/test_unreduced", "tests/laws/test_weak_types",
    "tests/oracles/", "tests/stories/test_elastic", "tests/stories/test_keys",
    "tests/stories/test_processes", "tests/stories/test_replicas",
    "tests/stories/test_reproducible", "tests/types/test_corpus.py::test_right_programs",
    "tests/units/api/test_caches", "tests/units/api/test_callbacks_failing",
    "tests/units/api/test_explicit_axes", "tests/units/api/test_export",
    "tests/units/api/test_garbage", "tests/units/api/test_reproducible",
    "tests/units/api/test_sums", "tests/units/api/test_symbolic",
    "tests/units/compat/test_served_names", "tests/units/control/",
    "tests/units/experimental/test_jet", "tests/units/experimental/test_sparse",
    "tests/units/insight/checks/test_held_out", "tests/units/insight/plans/test_applied_step",
    "tests/units/insight/plans/test_sequences", "tests/units/insight/verification/test_verify",
    "tests/units/lax/", "tests/units/primitives/", "tests/units/transforms/",
    "tests/units/xla/test_partitioning",
)  # fmt: skip
SHARE = 0.05
IN_PART = (
    "phalanx/", "tests/docs/test_docs.py::test_page_runs", "tests/laws/test_blocks_beside_cuts",
    "tests/laws/test_contexts", "tests/laws/test_cuts_that_types_tell", "tests/laws/test_nan",
    "tests/laws/test_narrow_dtypes", "tests/laws/test_one_answer",
    "tests/laws/test_pmap_over_meshes", "tests/laws/test_pmap_over_processes",
    "tests/laws/test_regions_beside_cuts", "tests/laws/test_reproducible",
    "tests/laws/test_slopes_of_all_sizes", "tests/laws/test_static_values",
    "tests/laws/test_subprograms", "tests/laws/test_tangents_kept", "tests/laws/test_uneven_cuts",
    "tests/laws/test_windows_of_anything", "tests/oracles/test_stats", "tests/stories/",
    "tests/units/",
)  # fmt: skip
ALWAYS = (
    "tests/docs/test_docs.py::test_page_runs_as_a_reader_runs_it[README", "tests/stories/tutorial",
    "tests/stories/test_acceptance", "tests/units/primitives/",
)  # fmt: skip
STATEMENTS = 0.4  # of those in what is taken in part
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
# Parameters that name what is tested; others are cases of it.
SUBJECTS = "law", "name", "f", "fault", "page"


def selected(items, seed):
    """The ``items`` of a run: all tests that are not sampled; of each statement of the others the
    case that ``seed`` draws first, and a share of its other cases. Of what is taken in part, a
    share of the statements.
    """
    cases = {}
    for item in items:
        cases.setdefault(statement(item), []).append(item.nodeid)
    least = {stated: min(draw(case, seed) for case in named) for stated, named in cases.items()}
    halves = {stated: draw(f"{min(named)} is stated", seed) for stated, named in cases.items()}

    def is_taken(item):
        in_part = item.nodeid.startswith(IN_PART) and not item.nodeid.startswith(ALWAYS)
        if in_part and halves[statement(item)] > STATEMENTS:
            return False
        if not item.nodeid.startswith(SAMPLED):
            return True
        return draw(item.nodeid, seed) <= max(SHARE, least[statement(item)])

    return list(filter(is_taken, items))


def optimized(module, seed):
    """Whether the programs of the tests in ``module`` are compiled as those of users are."""
    return module.nodeid.startswith(ACCURATE) or draw(module.nodeid, seed) < OPTIMIZED


def checked(module, seed):
    """Whether programs are checked as the tests in ``module`` trace them and after each pass."""
    return draw(f"{module.nodeid} checked", seed) < CHECKED


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
