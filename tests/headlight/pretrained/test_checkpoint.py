"""Checkpoints are loaded without running anything of theirs, refused above a size, and shared."""

import json
import shutil

import pytest
import torch
import transformers

from headlight.pretrained.checkpoint import SPREAD, Checkpoint, Shelf, devices, load, memory_of
from headlight.pretrained.opening import cost_of, open_checkpoint
from headlight.pretrained.tokenized import Words, tokenized
from headlight.pretrained.watched_pass import run


def test_a_folder_is_loaded_in_the_number_type_that_is_asked_for(checkpoint_of):
    folder, single = checkpoint_of("llama")
    half = load("half", folder, dtype="bfloat16")
    assert next(half.model.parameters()).dtype is torch.bfloat16
    assert memory_of(folder, "bfloat16") * 2 == memory_of(folder, "float32") == single.n_bytes == 2 * half.n_bytes
    assert not single.model.training
    assert not any(weight.requires_grad for weight in single.model.parameters())
    assert (single.part, single.most_tokens, single.chats, single.notes) == ("decoder", 64, False, ())


def test_what_is_too_large_is_refused_before_it_is_loaded(checkpoint_of, monkeypatch):
    folder, _ = checkpoint_of("gpt2")
    monkeypatch.setenv("HEADLIGHT_MEMORY_GB", "0.00001")
    for refusing in (lambda: cost_of(str(folder)), lambda: load("large", folder)):
        with pytest.raises(ValueError, match="the limit here is 10 kB"):
            refusing()


def test_code_of_a_checkpoint_is_never_run(checkpoint_of, tmp_path):
    folder = shutil.copytree(checkpoint_of("gpt2")[0], tmp_path / "own")
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "own", "auto_map": {"AutoConfig": "own.Config", "AutoModel": "own.Model"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    with pytest.raises(ValueError, match="code that comes with a checkpoint is never run"):
        load("own", folder)
    assert not (tmp_path / "ran").exists()


def test_weights_that_the_files_do_not_hold_are_named(checkpoint_of, tmp_path):
    from safetensors.torch import load_file, save_file

    folder = shutil.copytree(checkpoint_of("gpt2")[0], tmp_path / "less")
    file = folder / "model.safetensors"
    weights = load_file(file)
    save_file(
        {name: weight for name, weight in weights.items() if "h.1.mlp.c_fc" not in name}, file, {"format": "pt"}
    )
    (note,) = load("less", folder).notes
    assert "transformer.h.1.mlp.c_fc.bias and transformer.h.1.mlp.c_fc.weight" in note
    assert "random" in note


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"num_attention_heads": "four"}, "expected int, got str"),
        ({"num_attention_heads": 8}, "weights of other sizes than its configuration says"),
    ],
)
def test_a_configuration_that_does_not_fit_is_one_sentence(changed, sentence, checkpoint_of, tmp_path):
    folder = shutil.copytree(checkpoint_of("llama")[0], tmp_path / "changed")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **changed}))
    with pytest.raises(ValueError, match=sentence) as refused:
        load("changed", folder)
    assert "\n" not in str(refused.value)


def test_what_reads_no_text_is_refused(checkpoint_of, tmp_path):
    folder = shutil.copytree(checkpoint_of("gpt2")[0], tmp_path / "pictures")  # with its tokenizer
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    transformers.ViTModel(transformers.ViTConfig(image_size=32, **sizes)).save_pretrained(folder)
    with pytest.raises(ValueError, match="pictures reads pixel_values: text alone is not enough"):
        load("pictures", folder)


def test_without_a_tokenizer_there_is_one_sentence(checkpoint_of, tmp_path):
    folder = shutil.copytree(checkpoint_of("gpt2")[0], tmp_path / "mute")
    for file in folder.glob("tokenizer*"):
        file.unlink()
    with pytest.raises(ValueError, match="without a tokenizer that can be read"):
        load("mute", folder)


def test_sessions_share_a_checkpoint_and_the_one_used_least_recently_goes(checkpoint_of):
    folder, tiny = checkpoint_of("gpt2")
    shelf = Shelf(room=250)
    made = {name: Checkpoint(name, tiny.model, tiny.tokenizer, "decoder", 100) for name in "abc"}
    for name in "ab":
        shelf.put((name, "", ""), made[name])
    assert shelf.get(("a", "", "")) is made["a"]
    shelf.put(("c", "", ""), made["c"])
    assert [shelf.get((name, "", "")) for name in "abc"] == [made["a"], None, made["c"]]
    shelf.make_room(200)
    assert shelf.get(("a", "", "")) is None
    cost, room = cost_of(str(folder)), Shelf(room=10**9)
    first = open_checkpoint(cost, lambda *_: None, shelf=room)
    assert open_checkpoint(cost, lambda *_: None, shelf=room) is first


def test_a_model_that_is_partly_left_on_the_disk_gives_the_same_numbers(checkpoint_of, monkeypatch):
    folder, whole = checkpoint_of("llama")
    load_as_usual = transformers.LlamaForCausalLM.from_pretrained
    little = {"max_memory": {"cpu": "45KB"}}
    monkeypatch.setattr(
        transformers.LlamaForCausalLM,
        "from_pretrained",
        lambda *args, **more: load_as_usual(*args, **more, **little),
    )
    spread = load("spread", folder, device=SPREAD)
    assert set(spread.model.hf_device_map.values()) == {"cpu", "disk"}
    for text in ("the cat", "a"):
        alone, found = (run(each, tokenized(each, Words(text), 64)) for each in (whole, spread))
        assert torch.equal(found.output, alone.output)
        assert found.trace.paths == alone.trace.paths
    given = tokenized(spread, Words("the"), 64)
    assert given.inputs["input_ids"].device.type == spread.device.type == "cpu"


@pytest.mark.parametrize(("cuda", "mps", "accelerate", "offered"), [
    (0, False, True, ("cpu",)), (0, True, True, ("cpu", "mps")), (2, False, False, ("cpu", "cuda:0", "cuda:1")),
    (1, False, True, ("cpu", "cuda:0", "auto")),
])  # fmt: skip
def test_a_device_is_offered_where_there_is_one(monkeypatch, cuda, mps, accelerate, offered):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: cuda)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda > 0)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object() if accelerate else None)
    assert devices() == offered
