"""The lines of docs/library.md for one's own code run, and print what it says."""

import re
from pathlib import Path

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "library.md").read_text(encoding="utf-8")


def block(name):
    """Return the code between the two marks of a name."""
    return re.search(rf"<!-- {name} -->\n```\w*\n(.*?)```\n<!-- end -->", PAGE, re.DOTALL)[1]


def test_the_lines_run_and_print_what_the_page_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(block("own code"), "library.md", "exec"), {})
    printed = capsys.readouterr().out
    assert printed == f"torch.Size([2, 4, 9, 9])\n{block('checked')}"
    assert (tmp_path / "run.headlight").exists()
