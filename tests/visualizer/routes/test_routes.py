"""Arrays by their address: what is sent is what the run holds, and a bad address costs one sentence."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

import anyio
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect
from streamlit import config
from streamlit.web.server.starlette.starlette_gzip_middleware import SelectiveGZipMiddleware

from headlight.pretrained.opening import cost_of, open_checkpoint
from tests.headlight.pretrained.tiny_checkpoints import saved
from tests.visualizer.unpacking import unpacked
from visualizer.pictures.compare import ComparePicture
from visualizer.pictures.heads import heads_picture
from visualizer.pictures.step import Place, equation, map_of
from visualizer.pictures.token_way import stacks_of, taken_at
from visualizer.routes import served
from visualizer.routes.address import Part, version_here
from visualizer.routes.served import ROUTES
from visualizer.runs.operations_run import run_of_operations
from visualizer.runs.paths import attention_modules
from visualizer.runs.recorded import token_of
from visualizer.runs.recording_run import run_recording
from visualizer.runs.watched import WatchedRun
from visualizer.server.mount import script
from visualizer.settings.fields import fields_of
from visualizer.settings.link import read_query
from visualizer.settings.settings import FIELDS, Selection
from visualizer.views.watched.make_example import example_trace
from visualizer.work.cache import cached_run
from visualizer.work.cached_operations import cached_operations

LINK_PAGE = (Path(__file__).parents[3] / "docs" / "link.md").read_text(encoding="utf-8")
LINK = {"text": "the cat sat", "n_heads": "2", "d_model": "16", "weights": "random", "mask": "causal"}
WEIGHTS = "encoder.layers.1.self_attention.weights"
SCORES = "encoder.layers.1.self_attention.masked_scores"


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    """The routes behind what Streamlit compresses answers with, without a browser and without the page."""
    compressing = Middleware(SelectiveGZipMiddleware, minimum_size=1)
    app = Starlette(routes=ROUTES, middleware=[compressing])
    with TestClient(app) as found:
        yield found


def fetch(client: TestClient, name: str, **more: str):
    return client.get(f"/numbers/{name}?{urlencode(LINK | more)}")


def run_of(link):
    return cached_run(read_query({name: [value] for name, value in link.items()})[0])


def test_numbers_of_another_source_are_its_own_or_refused(client):
    def answer(**link):
        return client.get(f"/numbers/logits.npy?{urlencode(link)}")

    of_checkpoint = answer(source="pretrained", pretrained_model="nothing that is open")
    assert (of_checkpoint.status_code, "is not open" in of_checkpoint.text) == (400, True)
    of_recording = answer(source="recording", watched_source="example")
    assert (of_recording.status_code, "headlight.load" in of_recording.text) == (400, True)


def test_every_operation_of_a_checkpoint_has_an_address(client, tmp_path, monkeypatch):
    monkeypatch.setenv("HEADLIGHT_CACHE", str(tmp_path / "cache"))
    folder = str(saved("t5", tmp_path))
    open_checkpoint(cost_of(folder), lambda *_: None)
    link = {"source": "pretrained", "weights": "pretrained", "pretrained_model": folder, "text": "the cat"}
    whole_link = link | {"architecture": "encoder-decoder"}
    run = cached_operations(run_of(whole_link))
    path = next(path for path in run.trace if path.endswith("SelfAttention.q.linear"))
    answer = client.get(f"/numbers/{path}.npy?{urlencode(link)}")
    assert np.array_equal(np.load(io.BytesIO(answer.content)), run.seen.trace.stages[path].value.numpy())
    drawn = client.get(f"/pictures/step?{urlencode(link | {'stage': path, 'at': '1,15'})}")
    header, arrays = unpacked(drawn.content)
    assert header["panels"][-1]["name"] == path
    last = len(header["panels"]) - 1
    assert np.array_equal(arrays[f"values{last}"], run.trace[path].value[0].numpy())
    assert client.get(f"/pictures/step?{urlencode(link | {'stage': path, 'at': '1'})}").status_code == 400
    stack = stacks_of(run)[0]
    way = client.get(f"/pictures/way?{urlencode(link | {'stage': stack, 'query': '1'})}")
    assert way.content == taken_at(run, stack, 1).packed("exact")
    assert client.get(f"/pictures/map?{urlencode(whole_link)}").content == map_of(run).packed("exact")


def test_numbers_of_a_recording_are_those_of_the_run_that_is_open(client):
    def answer(view, run, **link):
        return client.get(f"/pictures/{view}?{urlencode({'recorded': token_of(run), **link})}")

    watched = WatchedRun(example_trace(), "")
    run, operations = run_recording(watched, watched.trace[0], 0), run_of_operations(watched)
    kind = attention_modules(run.trace)[0].replace(".layers.0", "")
    link = {"stage": f"{kind}.weights", "mask_b": "sliding_window"}
    picture = heads_picture(run, kind, Selection())
    assert answer("heads", run, **link).content == picture.packed("exact")
    other = run.repeat(replace(run.settings, mask=("sliding_window",)))
    both = ComparePicture(picture, heads_picture(other, kind, Selection()))
    assert answer("compare", run, **link).content == both.packed("exact")
    path = next(path for path in operations.trace if path.endswith("linear1.linear"))
    drawn = equation(operations, Place(path, 0, 0, (1, 2)))
    assert answer("step", operations, stage=path, at="1,2").content == drawn.packed("exact")
    stack = stacks_of(operations)[0]
    assert answer("way", operations, stage=stack).content == taken_at(operations, stack, 8).packed("exact")
    assert answer("map", operations).content == map_of(operations).packed("exact")
    assert "no longer open here" in client.get(f"/pictures/heads?recorded={'0' * 32}").text


def test_a_stage_is_sent_bit_by_bit(client):
    answer = fetch(client, f"{WEIGHTS}.npy")
    expected = run_of(LINK).trace[WEIGHTS].value.numpy()
    found = np.load(io.BytesIO(answer.content))
    assert found.dtype == expected.dtype
    assert np.array_equal(found, expected)
    assert answer.headers["headlight-axes"] == "B H Tq Tk"
    assert answer.headers["content-encoding"] == "identity"


def test_text_says_where_each_row_stands_and_loses_no_digit(client):
    rows = fetch(client, f"{WEIGHTS}.csv").text.splitlines()
    assert rows[0] == "B,H,Tq,Tk 0,Tk 1,Tk 2"
    table = np.array([[float(number) for number in row.split(",")] for row in rows[1:]])
    assert table[:, :3].tolist() == [[0, head, query] for head in range(2) for query in range(3)]
    expected = run_of(LINK).trace[WEIGHTS].value.numpy()
    assert np.array_equal(table[:, 3:].astype(np.float32), expected.reshape(-1, 3))


def test_masks_are_zeros_and_ones_in_text_and_blocked_scores_minus_infinity(client):
    assert fetch(client, "encoder.layers.0.self_attention.mask.csv", at="0,0").text.splitlines()[1] == "0,1,0,0"
    assert fetch(client, "encoder.layers.0.self_attention.masked_scores.csv", at="0,0,0,2").text == "-inf\n"


def test_a_path_without_its_layer_is_all_layers_or_those_that_are_named(client):
    trace = run_of(LINK).trace
    paths = [WEIGHTS.replace("1", str(layer)) for layer in range(2)]
    both = np.stack([trace[path].value.numpy() for path in paths])
    found = fetch(client, "encoder.self_attention.weights.npy")
    assert found.headers["headlight-axes"] == "L B H Tq Tk"
    assert np.array_equal(np.load(io.BytesIO(found.content)), both)
    one = fetch(client, "encoder.self_attention.weights.npy", layers="1")
    assert np.array_equal(np.load(io.BytesIO(one.content)), both[1:])


def test_steps_are_near_and_the_exact_number_of_a_cell_is_there_on_demand(client):
    expected = run_of(LINK).trace[WEIGHTS].value.numpy()
    for bits, n_steps in (("8", 255), ("16", 65_535)):
        header, arrays = unpacked(fetch(client, f"{WEIGHTS}.packed", precision=bits).content)
        assert header["dims"] == [["B", 1], ["H", 2], ["Tq", 3], ["Tk", 3]]
        assert np.abs(arrays["values"] - expected).max() <= 1.01 / n_steps
    cell = fetch(client, f"{WEIGHTS}.csv", at="0,1,2,0").text
    assert np.float32(cell) == expected[0, 1, 2, 0]
    _, arrays = unpacked(fetch(client, f"{WEIGHTS}.packed").content)
    assert np.array_equal(arrays["values"], expected)


def test_a_picture_is_sent_by_layer_as_the_page_draws_it(client):
    link = LINK | {"view": "heads"}
    header, arrays = unpacked(client.get(f"/pictures/heads?{urlencode(link | {'layers': '1'})}").content)
    picture = heads_picture(run_of(link), "encoder.self_attention", Selection(), (1,))
    assert np.array_equal(arrays["weights"], picture.weights)
    assert np.array_equal(arrays["blocked"], picture.blocked)
    assert header["layers"] == [1]
    assert header["shared"] == ["blocked"]
    assert header["rows"]["labels"] == ["the", "cat", "sat"]
    assert header["blocked_by"] == ["causal"]


def test_a_picture_gives_the_exact_number_of_one_cell(client):
    def cell(view: str, layers: str = "layers=1", at: str = "1,2,0", **link: str) -> dict[str, float] | str:
        answer = client.get(f"/pictures/{view}?{urlencode(LINK | link)}&{layers}&at={at}")
        if answer.status_code != 200:
            return answer.text
        return {name: float(*found) for name, found in unpacked(answer.content)[1].items()}

    exact = run_of(LINK).trace[WEIGHTS].value
    assert cell("heads") == {"weights": float(exact[0, 1, 2, 0])}
    assert cell("compare", mask_a="none") == {
        "a": float(run_of(LINK | {"mask": "none"}).trace[WEIGHTS].value[0, 1, 2, 0]),
        "b": float(exact[0, 1, 2, 0]),
    }
    refused = "at is a head, a query and a key, counted from 0, of 2 heads, 3 queries, 3 keys.\n"
    assert {cell("heads", at=at) for at in ("2,0,0", "0,0,3", "0,0", "0,0,0,0")} == {refused}
    assert cell("step", layers="") == "A cell of a stage is at the address of its numbers: leave out at.\n"


def test_two_runs_are_sent_as_the_page_compares_them(client):
    link = LINK | {"mask_a": "padding", "mask_b": "causal,sliding_window", "window": "2", "layers": "1"}
    header, arrays = unpacked(client.get(f"/pictures/compare?{urlencode(link)}").content)
    for side, mask in (("a", "padding"), ("b", "causal,sliding_window")):
        picture = heads_picture(run_of(link | {"mask": mask}), "encoder.self_attention", Selection(), (1,))
        assert np.array_equal(arrays[side], picture.weights)
        assert np.array_equal(arrays[f"blocked_{side}"], picture.blocked)
    assert (header["layers"], header["shared"]) == ([1], ["blocked_a", "blocked_b"])


def test_a_stage_is_sent_with_its_inputs_and_in_every_head(client):
    link = {"stage": "encoder.self_attention.weights", "layer": "1", "head": "1"}
    scores, weights = (run_of(LINK).trace[path].value.numpy()[0] for path in (SCORES, WEIGHTS))
    header, arrays = unpacked(client.get(f"/pictures/step?{urlencode(LINK | link)}").content)
    assert [panel["name"] for panel in header["panels"]] == ["masked_scores", "weights"]
    assert np.array_equal(arrays["values0"], scores[1])
    assert np.array_equal(arrays["values1"], weights[1])
    assert np.array_equal(arrays["blocked1"], ~np.tri(3, dtype=bool))
    _, arrays = unpacked(client.get(f"/pictures/step_heads?{urlencode(LINK | link)}").content)
    assert np.array_equal(np.stack([arrays["values0"], arrays["values1"]]), weights)


def test_the_ways_of_tokens_are_sent_as_the_page_draws_them(client):
    run = run_of(LINK).alone()
    expected = taken_at(run, stacks_of(run)[0], 1)
    answer = client.get(f"/pictures/way?{urlencode(LINK | {'query': '1'})}")
    assert answer.content == expected.packed("exact")
    header, arrays = unpacked(client.get(f"{answer.url}&precision=16").content)
    assert header["tokens"]["labels"] == ["the", "cat", "sat"]
    assert np.array_equal(arrays["norms"], expected.way.norms)
    assert 0 < np.abs(arrays["weights1"] - expected.way.stops[1].weights).max() < 1e-5


def test_the_same_bytes_have_one_tag_and_are_sent_once(client):
    first = fetch(client, f"{WEIGHTS}.npy")
    assert first.headers["cache-control"] == "private, no-cache"
    again = client.get(first.url, headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert fetch(client, f"{WEIGHTS}.npy", seed="1").headers["etag"] != first.headers["etag"]
    assert fetch(client, f"{WEIGHTS}.npy", at="0").headers["etag"] != first.headers["etag"]
    named = fetch(client, f"{WEIGHTS}.npy", version=version_here())
    assert "immutable" in named.headers["cache-control"]
    assert "immutable" not in fetch(client, f"{WEIGHTS}.npy", version="earlier").headers["cache-control"]


@pytest.mark.parametrize(
    ("name", "more", "sentence"),
    [
        (f"{WEIGHTS}.npy", {"n_heads": "99"}, "n_heads=99 is not between 1 and 16."),
        (f"{WEIGHTS}.npy", {"txet": "a"}, "There is no parameter txet: did you mean text?"),
        (f"{WEIGHTS}.npy", {"n_heads": "3"}, "d_model=16 is not a width that n_heads=3 can share evenly."),
        (f"{WEIGHTS}.npy", {"seed": ""}, "seed is empty."),
        (f"{WEIGHTS}.npy", {"text": ""}, "There is nothing to run yet: type at least one word into the text."),
        (
            f"{WEIGHTS}.npy",
            {"checkpoint": "0", "weights": "trained"},
            "This model is no longer kept",
        ),
        (f"{WEIGHTS}.npy", {"text": "word " * 1_500}, "The text has 1,500 tokens; at most 1,024 are drawn"),
        (f"{WEIGHTS}s.npy", {}, f"There is no stage '{WEIGHTS}s' in this trace: did you mean '{WEIGHTS}'?"),
        (f"{WEIGHTS}.pickle", {}, "A stage's numbers have the address of a stage and one of npy, csv, packed"),
        (f"{WEIGHTS}.npy", {"at": "0,2"}, "at asks for H 2, and H has 2, counted from 0."),
        (f"{WEIGHTS}.npy", {"at": "-1"}, "at is one place for each of the first axes"),
        (f"{WEIGHTS}.npy", {"at": "0,0,0,0,0"}, "at has 5 places and the array 4 axes."),
        (f"{WEIGHTS}.npy", {"layers": "0"}, f"{WEIGHTS} is in one layer"),
        ("encoder.self_attention.weights.npy", {"layers": "2"}, "There is no layer 2: encoder.self_attention"),
        (f"{WEIGHTS}.npy", {"precision": "8"}, "Numbers of a .npy are exact: leave out precision=8."),
        ("logits.packed", {"precision": "8"}, "Steps are for numbers from 0 to 1, and here are others"),
        (
            f"{WEIGHTS}.csv",
            {"text": "w " * 512, "n_heads": "4"},
            "This array has 1,048,576 numbers; at most 1,000,000",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and value.endswith(".") else "",
)
def test_a_bad_address_is_answered_by_one_sentence(client, name, more, sentence):
    answer = fetch(client, name, **more)
    assert answer.status_code == 400
    assert answer.text.startswith(sentence)
    assert answer.text.count("\n") == 1
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("/numbers/logits.npy?seed=1&seed=2", "seed is given more than once."),
        ("/numbers/nowhere.csv", "There is no stage 'nowhere' in this trace."),
        ("/numbers/logits.csv?score=1/", "The change of scores “1/” is left out"),
        (
            "/pictures/lab",
            "The pictures that have an address are heads, compare, step, step_heads, step_parts, way, map.",
        ),
        ("/pictures/way?at=0", "This picture is of all layers: leave out layers and at."),
        ("/pictures/way?architecture=attention", "This run has no residual stream to follow."),
        (
            "/pictures/step?stage=decoder.self_attention.q",
            "There is no stage decoder.self_attention.q in this run.",
        ),
        ("/pictures/step?layers=0", "A stage is in one layer: leave out layers, and name it by layer."),
        ("/pictures/step_parts", "There is nothing of this kind to draw for encoder.self_attention.weights."),
        ("/pictures/heads?batch=3", "There is no sequence 3: there are 1, counted from 0."),
        ("/pictures/heads?layers=5", "There is no layer 5: encoder.self_attention has 2, counted from 0."),
    ],
)
def test_bad_addresses_of_other_kinds(client, address, sentence):
    answer = client.get(address)
    assert answer.status_code == 400
    assert answer.text.startswith(sentence)
    assert answer.text.count("\n") == 1


def test_the_theme_of_a_link_does_not_keep_its_numbers_back(client):
    plain, themed = fetch(client, "logits.csv"), fetch(client, "logits.csv", embed_options="dark_theme")
    assert themed.status_code == 200
    assert themed.text == plain.text


NAMES = (*FIELDS, *fields_of(Part), "train_task", "nothing")
VALUES = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ("-1", "1e9", "nan", "inf", "", "\0", "0", "1", "0,0", "none", "on", "causal,causal", "b64:", "1.5")
    ),
)
PATHS = st.one_of(
    st.sampled_from(("logits", WEIGHTS, "encoder.self_attention.weights", "attention.scores", "..", "encoder.")),
    st.text(max_size=12),
)


@settings(max_examples=150, deadline=None)
@given(
    path=PATHS,
    ending=st.sampled_from((".npy", ".csv", ".packed", "", ".txt")),
    query=st.lists(st.tuples(st.sampled_from(NAMES), VALUES), max_size=3),
)
def test_no_address_breaks_the_server(client, path, ending, query):
    sent = urlencode([*query, ("n_layers", "1"), ("text", "a b")], errors="replace")
    url = client.build_request("GET", "/numbers/x").url.copy_with(
        raw_path=f"/numbers/{urlencode({'': path + ending}, errors='replace')[1:]}?{sent}".encode()
    )
    answer = client.get(url)  # it raises what the server would answer with 500
    assert answer.status_code in (200, 400, 404)
    if answer.status_code == 400:
        assert answer.text.strip()
        assert "Traceback" not in answer.text


def test_the_server_takes_no_more_than_it_can_compute(client, monkeypatch):
    monkeypatch.setattr(served, "MOST_WAITING", 0)
    answer = fetch(client, f"{WEIGHTS}.npy")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")


def test_a_request_that_nobody_waits_for_is_not_computed(monkeypatch):
    computed = []
    monkeypatch.setattr(served, "_stage", computed.append)
    scope = {
        **{"type": "http", "method": "GET", "path": "/numbers/logits.npy", "query_string": b"", "headers": []},
        "path_params": {"file": "logits.npy"},
    }

    async def gone():
        return {"type": "http.disconnect"}

    with ThreadPoolExecutor(1) as elsewhere:  # a browser test of this process may have a loop in this thread
        elsewhere.submit(anyio.run, served.numbers, served.Request(scope, gone)).result()
    assert not computed


def test_the_line_of_the_page_on_links_gives_what_it_says(client):
    line = re.search(r"curl -o weights\.npy '(http://localhost:8501)?([^']*)'", LINK_PAGE)
    assert line is not None
    found = np.load(io.BytesIO(client.get(line[2]).content))
    settings_, _, notices = read_query(
        {name: [value] for name, value in re.findall(r"(\w+)=([^&']*)", line[2].replace("+", " "))}
    )
    assert not notices
    assert np.array_equal(found, cached_run(settings_).trace[WEIGHTS].value.numpy())


def test_the_script_of_the_page_is_loaded_once(client):
    found = client.get(f"/{script().address}")
    assert found.text == script().text
    assert found.headers["content-encoding"] == "gzip"
    assert "immutable" in found.headers["cache-control"]
    assert client.get(f"/{script().address}", headers={"Accept-Encoding": "identity"}).text == script().text
    other = client.get("/scripts/pictures-0.js")
    assert other.status_code == 404
    assert other.text == f"The script of the page is {script().name}.\n"


def test_a_line_answers_as_a_request_does_and_outlasts_a_bad_address(client):
    address = f"pictures/heads?{urlencode(LINK)}"
    with client.websocket_connect("/followed") as line:
        line.send_text(address)
        assert line.receive_bytes() == client.get(f"/{address}").content
        for wrong in ("pictures/heads?n_heads=many", "pictures/nothing", "pictures/heads?" + "a" * 2**16):
            line.send_text(wrong)
            assert line.receive_text().endswith(".")
        line.send_text(address + "&layers=1")
        assert unpacked(line.receive_bytes())[0]["layers"] == [1]


def test_a_line_is_open_to_pages_of_this_server_alone(client):
    with client.websocket_connect("/followed", headers={"Origin": "http://testserver"}):
        pass
    for other in ("http://else", "null", "http://[", "http://testserver.else"):
        with pytest.raises(WebSocketDisconnect), client.websocket_connect("/followed", headers={"Origin": other}):
            pass


@pytest.mark.parametrize(
    ("option", "value"), [("server.corsAllowedOrigins", ["http://else"]), ("server.enableCORS", False)]
)
def test_an_origin_that_streamlit_allows_is_let_in(client, option, value):
    before = config.get_option(option)
    config.set_option(option, value)
    try:
        with client.websocket_connect("/followed", headers={"Origin": "http://else"}):
            pass
    finally:
        config.set_option(option, before)


def test_bytes_close_a_line_and_are_no_error(client):
    with client.websocket_connect("/followed") as opened:
        opened.send_bytes(b"pictures/heads")
        with pytest.raises(WebSocketDisconnect) as closed:
            opened.receive_text()
    assert closed.value.code == 1003
