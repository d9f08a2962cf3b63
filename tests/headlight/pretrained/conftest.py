"""Fixtures of the tests of checkpoints: a cache folder of their own, and small checkpoints, each saved once."""

import pytest


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """Nothing is found in, or written to, the folders of whoever runs the tests."""
    from huggingface_hub import constants

    monkeypatch.setenv("HEADLIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("headlight.pretrained.checkpoint_places.sites", lambda: (tmp_path / "site-packages",))


@pytest.fixture(scope="session")
def checkpoint_of(tmp_path_factory):
    """Gives a small checkpoint of a family, saved and loaded once."""
    from headlight.pretrained.checkpoint import load
    from tests.headlight.pretrained.tiny_checkpoints import saved

    made = {}

    def of(family):
        if family not in made:
            folder = saved(family, tmp_path_factory.mktemp(family))
            made[family] = (folder, load(family, folder))
        return made[family]

    return of
