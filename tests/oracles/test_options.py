"""Options: those that programs for JAX set."""

import jax
import pytest

from phalanx.base.config import config
from phalanx.base.errors import ConfigError


def test_every_option_of_the_peer_is_taken_or_refused_in_words():
    assert [name for name in jax.config.values if not hasattr(config, name)] == []


def test_what_to_do_instead_is_said():
    with pytest.raises(ConfigError, match=r"checkify\.checkify"):
        config.update("jax_experimental_unsafe_xla_runtime_errors", True)
    config.update("jax_pgle_profiling_runs", 3)
    config.update("jax_sort_devices_by_process_index", True)
