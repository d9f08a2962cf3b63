"""The documents agree with the code, and their links lead somewhere."""

import re
from pathlib import Path
from urllib.parse import parse_qs, urlencode

import pytest

from docs.remake import PAGE, with_parameters
from visualizer.settings.link import read_query, write_query
from visualizer.settings.training_settings import TRAINING
from visualizer.settings.watched_settings import WATCHED

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md")))
LINKS = [
    pytest.param(link, id=f"{page.name}-{number}")
    for page in PAGES
    for number, link in enumerate(
        re.findall(r"\(http://localhost:8501/\?([^)]*)\)", page.read_text(encoding="utf-8"))
    )
]


def test_the_parameters_of_a_link_are_those_of_the_settings():
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_parameters(page), "python -m docs.remake"


@pytest.mark.parametrize("link", LINKS)
def test_a_link_is_what_the_app_writes(link):
    query = parse_qs(link, strict_parsing=True)
    settings, selection, notices = read_query(query)
    assert notices == ()
    assert not query.keys() & {*TRAINING, *WATCHED}
    written = write_query(settings, selection) | ({"view": "step"} if selection.view == "step" else {})
    assert parse_qs(urlencode(written)) | {key: query[key] for key in ("query", "key") if key in query} == query


def test_the_readme_has_five_links():
    assert len([link for link in LINKS if link.id.startswith("README")]) == 5


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_points_to_is_there(page: Path):
    pointed = re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text(encoding="utf-8"))
    assert [target for target in pointed if not (page.parent / target).exists()] == []
