"""The picture of the residual stream shows what the model added."""

from __future__ import annotations

import numpy as np
import pytest

from tests.visualizer.sample_runs import VARIANTS, run_of
from visualizer.stages.panels import to_array
from visualizer.views.charts.residual import additions, sums_beside


@pytest.mark.parametrize("variant", [*VARIANTS, "encoder_layer"])
def test_additions_are_the_outputs_of_the_sub_layers(variant):
    run = run_of(variant)
    for stack in dict.fromkeys(path.partition(".")[0] for path in run.trace if "residual" in path):
        paths = [path for path in run.trace if path.startswith(f"{stack}.") and "residual" in path]
        assert sums_beside(run, paths[0]) == paths
        found = additions(run, paths, 0)
        kinds = ["attention", "attention", "feed_forward"] if f"{stack}.layers.0.residual3" in paths else []
        kinds = kinds or ["attention", "feed_forward"]
        assert [one.kind for one in found] == kinds * (len(paths) // len(kinds))
        for path, one in zip(paths, found, strict=True):
            assert np.array_equal(one.after, to_array(run.trace[path].value[0]))
            if variant != "dropout":
                part = {"self-attention": "self_attention", "cross-attention": "cross_attention"}
                module = path.rpartition(".")[0]
                name = part.get(one.title.split()[-1], "feed_forward")
                output = to_array(run.trace[f"{module}.{name}.output"].value[0])
                assert one.after - one.before == pytest.approx(output, abs=1e-5)


def test_logits_belong_to_the_decoder():
    run = run_of("encoder-decoder")
    assert {path.partition(".")[0] for path in sums_beside(run, "logits")} == {"decoder"}
    assert sums_beside(run_of("encoder"), "logits")[0].startswith("encoder.")
    assert sums_beside(run_of("one_head"), "attention.output") == []
