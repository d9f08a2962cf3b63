"""Fetching happens in a process of its own, which can be ended and leaves nothing half done."""

import json
import threading
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import gguf
import pytest
import torch

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


NAMES = {
    "embed_tokens": "token_embd",
    "norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    **{f"{name}_proj": f"attn_{name}" for name in "qkv"},
    "o_proj": "attn_output",
    **{f"{name}_proj": f"ffn_{name}" for name in ("gate", "up", "down")},
}
"""The modules of a Llama in a GGUF file."""


def as_gguf(checkpoint, file, *, without=""):
    """A Llama as a GGUF file, in which the halves of a rotated vector alternate."""
    config, tokenizer = checkpoint.config, checkpoint.tokenizer
    tokens = [tokenizer.convert_ids_to_tokens(one) for one in range(config.vocab_size)]
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_vocab_size(config.vocab_size)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * len(tokens))
    writer.add_token_merges(["t h", "th e"])
    for name, weight in checkpoint.model.state_dict().items():
        *above, module, _ = name.split(".")
        if module in ("q_proj", "k_proj"):
            weight = weight.view(-1, 2, config.head_dim // 2, config.hidden_size).transpose(1, 2).flatten(0, 2)
        layer = f"blk.{above[2]}." if "layers" in above else ""
        if (tensor := f"{layer}{NAMES[module]}.weight") != without:
            writer.add_tensor(tensor, weight.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_a_gguf_file_is_the_model_that_was_written_and_what_it_lacks_is_named(checkpoint_of, tmp_path):
    _, written = checkpoint_of("llama")
    as_gguf(written, tmp_path / "less.gguf", without="blk.1.attn_q.weight")
    read = open_checkpoint(cost_of(str(tmp_path / "less.gguf")), lambda *_: None)
    (note,) = read.notes
    assert "no weights for model.layers.1.self_attn.q_proj.weight: these are random" in note
    missing = "model.layers.1.self_attn.q_proj.weight"
    read.model.get_parameter(missing).data = written.model.get_parameter(missing).data
    ids = torch.tensor([[4, 5, 6, 7]])
    torch.testing.assert_close(read.model(ids).logits, written.model(ids).logits, rtol=1e-4, atol=1e-5)
