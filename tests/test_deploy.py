"""The deployment has what there is: the files that the container copies, and the places that the proxy is told."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"


def test_the_container_has_every_file_that_the_app_runs_with():
    copied = re.findall(r"^COPY (.+) \S+$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    names = {name for line in copied for name in line.split()}
    assert all((ROOT / name).exists() for name in names)
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    packages = {path.partition("/")[0] for path in tracked.splitlines() if path.endswith("/__init__.py")}
    assert packages - {"tests"} <= names
    assert {"app.py", ".streamlit", "requirements.txt"} <= names


def test_the_proxy_is_told_all_places_that_it_asks_for():
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    told = compose["services"]["proxy"]["environment"]
    assert set(re.findall(r"\$\{(\w+)\}", (DEPLOY / "haproxy.cfg").read_text())) == set(told)
    servers = {place.partition(":")[0] for name, place in told.items() if name != "PROXY"}
    assert servers == set(compose["services"]) - {"proxy"} == set(compose["services"]["proxy"]["depends_on"])
    assert compose["services"]["one"]["volumes"] == ["store:/store"]
    assert "HEADLIGHT_STORE=/store" in (DEPLOY / "Dockerfile").read_text()


@pytest.mark.parametrize("name", ["guide", "link", "library", "deploy"])
def test_the_documents_are_in_the_site(name):
    assert f"  - {name}.md\n" in (ROOT / ".mkdocs.yml").read_text()
