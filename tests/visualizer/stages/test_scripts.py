"""Every emitted script, executed beside the files that the server saves, computes its stage again."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from dataclasses import replace
from urllib.parse import urlencode

import numpy as np
import pytest
from safetensors.torch import load, save_file
from starlette.applications import Starlette
from starlette.testclient import TestClient

from tests.visualizer.sample_runs import BASE, EDITED, VARIANTS
from visualizer.routes.served import ROUTES
from visualizer.runs.compute import compute_run
from visualizer.settings.fields import WORKED_EXAMPLES
from visualizer.settings.settings import Settings
from visualizer.stages.scripts import numbers_of, script

MORE = {
    "several texts": replace(BASE, text="the cat\nthe dog saw the cat\na mat", pad=0),
    "several texts, padded on the left": replace(BASE, text="the cat\nthe dog saw the cat", pad=0, pad_side="left"),
    **{f"edited {name}": replace(BASE, **edited) for name, edited in EDITED.items()},
    "broken": replace(BASE, architecture="decoder", mask=("causal",), fault="after_softmax"),
    "scores that cancel": Settings(
        architecture="attention", text="the cat saw the dog", tokens="characters", n_heads=8, scale_scores=False
    ),
    **{name: Settings(weights=name) for name in WORKED_EXAMPLES},
}
LINK = {"text": "a b c", "architecture": "decoder", "n_layers": "2", "weights": "random"}
WEIGHTS = "decoder.layers.1.self_attention.weights"


@pytest.fixture
def client():
    return TestClient(Starlette(routes=ROUTES))


def get(client, name, **more):
    return client.get(f"/numbers/{name}?{urlencode(LINK | more)}")


def executed(code):
    said = []
    exec(code, {"print": lambda *words: said.append(words)})  # written by the project, not by a person who uses it
    return said


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("name", [*VARIANTS, *MORE])
def test_every_script_of_a_run_holds(name, library, tmp_path, monkeypatch):
    batch = compute_run((VARIANTS | MORE)[name])
    run = batch.at(batch.n_batch_items - 1).alone()
    numbers = numbers_of(run)
    np.savez(tmp_path / "run.npz", **{each: value.numpy() for each, value in numbers.items()})
    save_file({each: value.clone().contiguous() for each, value in numbers.items()}, tmp_path / "run.safetensors")
    monkeypatch.chdir(tmp_path)
    paths = list(run.trace)
    for path in {*paths[:: max(1, len(paths) // 12)], *paths[-2:]}:
        code = script(run, path, library, "?text=a")
        assert executed(code) == [(path, tuple(run.trace[path].value.shape), "is what was saved")], path
        assert "headlight" not in code.lower().replace("headlight saved", "")


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_layers_that_are_alike_are_a_loop(library, norm):
    settings = replace(BASE, architecture="encoder-decoder", norm=norm)
    few, many = (
        script(compute_run(replace(settings, n_layers=n_layers)).alone(), "probabilities", library, "")
        for n_layers in (2, 5)
    )
    assert few.count("for layer in range(2):") == 2
    assert many == few.replace("range(2)", "range(5)")


@pytest.mark.parametrize("n_layers", [1, 2])
def test_a_variable_has_its_short_name_again_once_nothing_reads_the_one_before(n_layers):
    run = compute_run(replace(BASE, architecture="encoder-decoder", n_layers=n_layers)).alone()
    code = script(run, "probabilities", "torch", "")
    assert code.count(" scores = q @ k.mT" if n_layers > 1 else "\nscores = q @ k.mT") == 3
    assert "encoder_self_attention =" not in code


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("layer", [0, 1])
def test_a_layer_in_which_something_was_put_is_in_no_loop(layer, library):
    edited = f"decoder.layers.{layer}.norm1"  # it reads nothing then, and every stage of its layer is needed still
    settings = replace(BASE, architecture="decoder", norm="pre", n_layers=2, edits=f"{edited}-zero")
    code = script(compute_run(settings).alone(), "probabilities", library, "")
    assert "for layer" not in code
    assert f'= run["{edited}"]' in code


def test_a_layer_that_is_not_whole_follows_the_loop():
    run = compute_run(replace(BASE, architecture="decoder", n_layers=3)).alone()
    code = script(run, "decoder.layers.2.self_attention.weights", "torch", "")
    assert "for layer in range(2):" in code
    assert 'F.linear(x, run["decoder.layers.2.self_attention.w_q.weight"]' in code
    assert "for " not in script(run, "decoder.layers.1.self_attention.weights", "torch", "")


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_a_script_fails_where_the_numbers_are_others(library, tmp_path, monkeypatch):
    run = compute_run(VARIANTS["decoder"]).alone()
    numbers = {each: value.clone().contiguous() for each, value in numbers_of(run).items()}
    numbers["decoder.layers.1.self_attention.w_v.weight"] *= 2.0
    np.savez(tmp_path / "run.npz", **{each: value.numpy() for each, value in numbers.items()})
    save_file(numbers, tmp_path / "run.safetensors")
    monkeypatch.chdir(tmp_path)
    executed(script(run, "decoder.layers.0.norm2", library, ""))
    with pytest.raises(AssertionError):
        executed(script(run, "decoder.layers.1.self_attention.context", library, ""))


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_what_dropout_drew_is_read_and_the_rest_computed(library):
    run = compute_run(VARIANTS["dropout"]).alone()
    code = script(run, next(path for path in run.trace if path.endswith("residual1")), library, "")
    read = re.findall(r"^\w+ = run\[.*\.(\w+)\"\]$", code, re.MULTILINE)
    assert read == ["embedded", "dropped_output1", "residual1"]  # the last is what is expected


def test_the_server_saves_what_its_scripts_read(client, tmp_path):
    for ending in ("npz", "safetensors"):
        (tmp_path / f"run.{ending}").write_bytes(get(client, f"run.{ending}").content)
    for ending in ("numpy", "torch"):
        answer = get(client, f"{WEIGHTS}.{ending}")
        assert answer.headers["content-disposition"] == f"attachment; filename={WEIGHTS}_{ending}.py"
        done = subprocess.run(
            [sys.executable, "-I", "-c", answer.text], cwd=tmp_path, capture_output=True, text=True, timeout=600
        )
        assert done.stderr == ""
        assert done.stdout == f"{WEIGHTS} (1, 4, 3, 3) is what was saved\n"
    notebook = json.loads(get(client, f"{WEIGHTS}.ipynb").text)
    about, code = notebook["cells"]
    assert about["source"].startswith(f"Attention weights, {WEIGHTS}")
    assert f'expected = run["{WEIGHTS}"]' in code["source"]


def test_both_files_hold_the_same_numbers_and_every_stage(client):
    arrays = np.load(io.BytesIO(get(client, "run.npz").content), allow_pickle=False)
    tensors = load(get(client, "run.safetensors").content)
    assert set(arrays) == set(tensors)
    assert WEIGHTS in tensors
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(arrays[name], tensor.numpy())


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (f"{WEIGHTS}.npz", "A stage's numbers have the address of a stage"),
        ("run.numpy", "A stage's numbers have the address of a stage"),
        ("decoder.self_attention.weights.numpy", "A script computes one stage of the run, named by its layer"),
        ("decoder.layers.9.norm1.torch", "A script computes one stage of the run"),
    ],
)
def test_a_wrong_address_gets_one_sentence(client, name, sentence):
    answer = get(client, name)
    assert answer.status_code in (400, 404)
    assert sentence in answer.text
