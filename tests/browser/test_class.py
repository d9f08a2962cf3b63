"""A class and its teacher in browsers of their own: what a reload keeps."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.headlight_page import panels, rerun, settle
from tests.reading import click_cell

LINK = {"text": "the dog saw the cat", "view": "heads", "head": 0, "query": 2, "hidden": "on"}


def test_a_student_who_loads_the_page_again_has_the_marks_and_counts_once(open_app):
    student = open_app(**LINK, class_code="loads")
    marks = student.locator(".st-key-expectation")
    with rerun(student):
        click_cell(panels(student, "expectation"), 2, 1, (5, 5))
    expect(marks).to_contain_text("1 of 5 rows marked")
    student.reload()
    settle(student)
    expect(marks).to_contain_text("1 of 5 rows marked")
    with rerun(student):
        click_cell(panels(student, "expectation"), 2, 3, (5, 5))
