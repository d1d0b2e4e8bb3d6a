"""The backend for Ray Train, without Ray; ``./dev engines`` runs it."""

import pytest

from phalanx.experimental import ray


def test_without_ray_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(ray, "ray", None)
    with pytest.raises(
        ImportError, match=r"Ray Train is not installed; pip install 'ray\[train\]'"
    ):
        ray.PhalanxConfig()
