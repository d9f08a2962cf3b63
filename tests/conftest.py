"""Property tests draw the same examples on every run, and none fails for being slow on a busy machine."""

import functools
import gc

import torch
from hypothesis import settings
from streamlit.components.v2 import manifest_scanner

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

torch.set_num_threads(1)  # the tests' tensors are small: threads that wait for each other cost more than they save

# every AppTest reads what is said of every installed package, in search of components: once is enough
manifest_scanner.scan_component_manifests = functools.cache(manifest_scanner.scan_component_manifests)


def pytest_collection_finish() -> None:
    """Every later garbage collection passes over what has been imported and collected and stays to the end."""
    gc.collect()
    gc.freeze()
