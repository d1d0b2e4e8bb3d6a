"""Times of the model beside those of published runs, and of steps that were measured."""

from pathlib import Path

import numpy as np
from msgspec.structs import replace

from phalanx.insight.plans.performance_model import fitted_to
from tests.units.insight.plans import (
    measured,
    published,
    published_gpus,
    published_pipelines,
    published_recomputation,
)
from tests.units.insight.plans.published import FITTED

DOCS = Path(__file__).parents[4] / "docs" / "plan.md"


def test_published_runs():
    """Fitted to every other row; of those that are left, nearly all within 15 %."""
    fitted, shown = map(np.array, map(published.errors, (published.FITTED_TO, published.SHOWN)))
    assert np.abs(shown).mean() < 0.07 and np.abs(fitted).mean() < 0.07
    assert (np.abs(shown) < 0.15).mean() >= 0.95 and np.abs(shown).max() < 0.2
    for name in ("efficiency", "exchanging", "straggling"):
        for factor in (0.95, 1.05):
            other = replace(FITTED, **{name: factor * getattr(FITTED, name)})
            worse = np.array(published.errors(published.FITTED_TO, other))
            assert (np.log1p(worse) ** 2).sum() > 0.999 * (np.log1p(fitted) ** 2).sum()


def test_published_runs_on_gpus():
    """Fitted to every other row of each system; those that are left are within 15 %."""
    for rows in (published_gpus.H100, published_gpus.A100):
        fitted, shown = map(np.array, map(published_gpus.errors, (rows[::2], rows[1::2])))
        assert np.abs(shown).mean() < 0.04 and np.abs(shown).max() < 0.15
        given = fitted_to(rows[0].chips.system)
        for factor in (0.97, 1.03):
            other = replace(given, efficiency=factor * given.efficiency)
            worse = np.array(published_gpus.errors(rows[::2], other))
            assert (np.log1p(worse) ** 2).sum() > 0.999 * (np.log1p(fitted) ** 2).sum()


def test_published_runs_that_are_interleaved():
    """Nothing is fitted to them; all fit into memory, as they did."""
    rows = published_recomputation.ROWS
    found = np.array(published_recomputation.errors(rows))
    assert np.abs(found).mean() < 0.13 and np.abs(found).max() < 0.25
    assert all(row.planned().fits for row in rows)
    for row in rows:
        if row.share is not None:  # what is published agrees with itself
            rate = row.model.operations(row.sequences) / row.published / row.gpus
            assert abs(rate / 312e12 - row.share / 100) < 0.002


def test_steps_that_were_measured():
    """The documentation shows each."""
    factors = np.array([planned / seconds for _, _, seconds, planned in measured.rows()])
    assert len(factors) == 12 and np.exp(np.abs(np.log(factors)).mean()) < 1.15
    assert factors.max() < 1.3 and factors.min() > 0.65


def test_the_documentation_has_their_errors():
    tables = published, published_gpus, published_pipelines, published_recomputation, measured
    for of in tables:
        assert of.table() in DOCS.read_text()
