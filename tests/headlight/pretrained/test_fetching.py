"""Fetching happens in a process of its own, which can be ended and leaves nothing half done."""

import json
import threading
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from headlight import process
from headlight.pretrained import fetching
from headlight.pretrained.checkpoint_places import place_of
from headlight.pretrained.fetching import Task, ask_hub, converted_folder, fetch
from headlight.pretrained.opening import cost_of, open_checkpoint

SHA = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def hub(checkpoint_of, monkeypatch):
    """A hub on this machine that has one model, ``owner/tiny``, and counts what is asked of it."""
    folder, _ = checkpoint_of("gpt2")
    files = {file.name: file.read_bytes() for file in folder.iterdir()} | {"run.py": b"boom", "weights.bin": b"x"}
    asked, gate = [], threading.Event()
    gate.set()

    class Hub(BaseHTTPRequestHandler):
        def do_HEAD(self):
            self.answer(with_body=False)

        def do_GET(self):
            self.answer(with_body=True)

        def answer(self, *, with_body):
            path = self.path.partition("?")[0]
            name = path.rpartition("/")[2]
            if path == "/api/models/owner/tiny":
                siblings = [{"rfilename": file, "size": len(content)} for file, content in files.items()]
                self.send(json.dumps({"id": "owner/tiny", "sha": SHA, "siblings": siblings}).encode(), with_body)
            elif path == "/api/models/owner/pickled":
                siblings = [{"rfilename": "pytorch_model.bin", "size": 9}, {"rfilename": "config.json", "size": 9}]
                self.send(json.dumps({"id": "owner/pickled", "sha": SHA, "siblings": siblings}).encode(), with_body)
            elif path.startswith("/owner/tiny/resolve/") and name in files:
                if with_body:
                    asked.append(name)
                    gate.wait(10)
                self.send(files[name], with_body)
            else:
                self.send_response(404)
                self.send_header("X-Error-Code", "RepoNotFound")
                self.send_header("Content-Length", "0")
                self.end_headers()

        def send(self, content, with_body):
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("ETag", f'"{hash(content) & 0xFFFFFFFF:x}"')
            self.send_header("X-Repo-Commit", SHA)
            self.end_headers()
            if with_body:
                self.wfile.write(content)

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setenv("HF_ENDPOINT", address)
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", address)
        monkeypatch.setattr("huggingface_hub.hf_api.api.endpoint", address)
        yield asked, gate
        gate.set()
        server.shutdown()


def test_a_model_of_the_hub_is_fetched_once_and_then_opened_without_it(hub):
    asked, _ = hub
    cost = cost_of("owner/tiny")
    assert cost.download > 10_000
    assert "to download" in cost.in_words
    said = []
    checkpoint = open_checkpoint(cost, lambda text, fraction: said.append((text, fraction)))
    assert checkpoint.part == "decoder"
    assert not {"run.py", "weights.bin"} & set(asked)
    assert sorted(fraction for _, fraction in said) == [fraction for _, fraction in said]
    assert cost_of("owner/tiny").download == 0
    assert place_of("owner/tiny").is_here


def test_a_fetch_that_is_ended_ends_its_process_and_leaves_no_checkpoint(hub, monkeypatch):
    _, gate = hub
    gate.clear()
    started, start = [], process.subprocess.Popen
    monkeypatch.setattr(
        process.subprocess, "Popen", lambda *args, **more: started.append(start(*args, **more)) or started[-1]
    )
    with closing(fetch(ask_hub(place_of("owner/tiny")).task)) as reports:
        assert next(reports).fraction == 0.0
    assert started[0].returncode not in (None, 0)
    assert not place_of("owner/tiny").is_here


def test_what_the_hub_does_not_have_and_no_network_are_one_sentence_each(hub, monkeypatch):
    with pytest.raises(ValueError, match="The hub has no model owner/other"):
        cost_of("owner/other")
    with pytest.raises(
        ValueError, match=r"owner/pickled holds its weights in pytorch_model.bin, a file that can run"
    ):
        cost_of("owner/pickled")
    for name in ("huggingface_hub.constants.ENDPOINT", "huggingface_hub.hf_api.api.endpoint"):
        monkeypatch.setattr(name, "http://127.0.0.1:9")
    with pytest.raises(ValueError, match="The hub cannot be reached from here"):
        cost_of("owner/tiny")


def test_a_folder_is_in_its_place_once_all_of_it_is_there(tmp_path):
    target = tmp_path / "deep" / "target"
    with suppress(RuntimeError), fetching._folder_in_place_of(target, target.with_name("rough")) as rough:
        (rough / "half").touch()
        raise RuntimeError
    assert list(target.parent.iterdir()) == []
    with fetching._folder_in_place_of(target, target.with_name("rough")) as rough:
        (rough / "whole").touch()
        assert not target.exists()
    assert [file.name for file in target.iterdir()] == ["whole"]


def test_a_gguf_file_that_changed_is_converted_anew(tmp_path):
    file = tmp_path / "m.gguf"
    file.write_bytes(b"1")
    first = converted_folder(file)
    assert converted_folder(file) == first
    file.write_bytes(b"22")
    assert converted_folder(file) != first


def test_what_goes_wrong_in_the_process_is_said_in_one_sentence(tmp_path):
    (tmp_path / "torn.gguf").write_bytes(b"GGUF")
    task = Task("convert", str(tmp_path / "torn.gguf"), str(tmp_path / "x"))
    with pytest.raises(ValueError, match=r"torn\.gguf cannot be converted"), closing(fetch(task)) as reports:
        list(reports)
    assert [file.name for file in tmp_path.iterdir()] == ["torn.gguf"]
