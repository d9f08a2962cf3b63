"""The lines of the README for one's own code run, and print what it says."""

import re
from pathlib import Path

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")


def block(name):
    """What stands between two marks."""
    return re.search(rf"<!-- {name} -->\n```\w*\n(.*?)```\n<!-- end -->", README, re.DOTALL)[1]


def test_the_lines_run_and_print_what_the_readme_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(block("own code"), "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert printed == f"torch.Size([2, 4, 9, 9])\n{block('checked')}"
    assert (tmp_path / "run.headlight").exists()
