"""Uploads: the one limit that is shown there is the one that holds."""

from __future__ import annotations

import pytest

from tests.test_app import open_app
from visualizer.guide import path
from visualizer.views.lab import mask_files
from visualizer.views.watched import recordings


@pytest.mark.parametrize(
    ("link", "most"),
    [
        ({"view": "step", "guided": "on"}, path.MAX_BYTES),
        ({"view": "lab", "panel": "load"}, mask_files.MAX_BYTES),
        ({"source": "recording", "view": "heads"}, recordings.MOST_BYTES),
    ],
)
def test_the_limit_beside_a_place_for_files_is_that_of_its_reader(link, most):
    [uploader] = open_app(**link).get("file_uploader")
    assert uploader.proto.max_upload_size_mb * 2**20 == most
    assert "up to" not in uploader.proto.label
