"""The wheel, installed beside a project whose own ``model.py`` and ``visualizer`` must stay what they are."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

import pytest

from headlight import command

ROOT = Path(__file__).parents[1]

IN_YOUR_OWN_CODE = """
import sys
sys.modules.update(dict.fromkeys(("streamlit", "numpy", "plotly", "safetensors")))  # as if they were not installed

import torch
from torch import nn

import headlight
import model
import visualizer

assert (model.NAME, visualizer.NAME) == ("theirs", "theirs")
assert headlight.__file__.startswith(sys.prefix)
layer = nn.TransformerEncoderLayer(d_model=16, nhead=4, batch_first=True)
batch = {"src": torch.randn(2, 5, 16), "src_mask": nn.Transformer.generate_square_subsequent_mask(5)}
with headlight.watch(layer) as trace:
    layer(**batch)
assert trace["self_attn"].weights.shape == (2, 4, 5, 5)
assert "causal" in str(headlight.check(layer, **batch))
assert "<img" in trace._repr_html_()
headlight.assert_causal(layer, **batch)
"""

IN_THE_APP = """
import sys
from importlib.util import find_spec
from pathlib import Path

from streamlit.testing.v1 import AppTest

import headlight
import model
from headlight import command, load, process
from headlight.visualizer.work import trainings

example = Path(command.__file__).parent / "visualizer" / "views" / "watched" / "example.headlight"
load(example).save("run.headlight")
assert "<iframe" in headlight.show(text="a b", heads=2)._repr_html_()
given = command.arguments(["run.headlight", "--server.port", "1"])
assert given[2:] == ["--server.port", "1", "--", str(Path("run.headlight").resolve())]
assert Path(given[1]).with_name(".streamlit").joinpath("config.toml").exists()
assert str(process._ROOT) in sys.path and find_spec(trainings._COMMAND[2])

sys.argv = ["app.py", given[-1]]
sys.path.insert(0, str(Path(given[1]).parent))  # as Streamlit does
app = AppTest.from_file(given[1], default_timeout=60).run()
assert not app.exception and not app.error, (app.exception, app.error)
assert any("run.headlight" in text.value for text in app.markdown)
assert (model.NAME, Path(model.__file__)) == ("theirs", Path("model.py").resolve())
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel alone, and its dependencies from the one that runs the tests."""
    folder = tmp_path_factory.mktemp("environment")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    [wheel] = folder.glob("*.whl")
    venv.create(folder / "venv")
    python = folder / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", "--no-compile", wheel], check=True)
    [packages] = (folder / "venv").glob("lib/*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return python


@pytest.mark.parametrize("code", [IN_YOUR_OWN_CODE, IN_THE_APP], ids=["in your own code", "in the app"])
def test_installed_it_hides_nothing_and_nothing_hides_it(code, environment, tmp_path):
    for place in (tmp_path / "model.py", tmp_path / "visualizer" / "__init__.py"):
        place.parent.mkdir(exist_ok=True)
        place.write_text('NAME = "theirs"\n')
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [environment, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert environment.with_name("headlight").exists()


def test_the_command_refuses_in_a_sentence(capsys, monkeypatch):
    with pytest.raises(SystemExit):
        command.arguments(["gone.headlight"])
    assert "there is no file gone.headlight" in capsys.readouterr().err
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    with pytest.raises(SystemExit):
        command.arguments([])
    assert 'pip install "headlight[app]"' in capsys.readouterr().err


def test_in_the_repository_the_command_opens_its_app():
    assert command.arguments([]) == ["run", str(ROOT / "app.py"), "--"]


def test_what_the_app_needs_is_written_down_in_both_places():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    required = {line for line in (ROOT / "requirements.txt").read_text().splitlines() if "torch" not in line}
    extras = project["optional-dependencies"]
    assert {*extras["app"], *extras["pretrained"]} == required
