"""A class and its teacher in browsers of their own: what a reload keeps."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.headlight_page import link_of, panels, rerun, settle
from tests.reading import click_cell

LINK = {"text": "the dog saw the cat", "view": "heads", "head": 0, "query": 2, "hidden": "on"}


def test_a_student_who_loads_the_page_again_has_the_marks_and_counts_once(open_app):
    student = open_app(**LINK, class_code="loads")
    marks = student.locator(".st-key-expectation")
    with rerun(student):
        click_cell(panels(student, "expectation"), 2, 1, (5, 5))
    expect(marks).to_contain_text("query 2 saw: key 1 dog marked")
    student.reload()
    settle(student)
    expect(marks).to_contain_text("query 2 saw: key 1 dog marked")
    with rerun(student):
        click_cell(panels(student, "expectation"), 2, 3, (5, 5))


def test_who_began_a_class_teaches_it_also_after_a_reload_and_leads_its_students(open_app):
    teacher = open_app(**LINK)
    teacher.get_by_role("button", name="Teach").click()
    teacher.get_by_role("button", name="Poll a class").click()
    teacher.wait_for_url(lambda url: "class_code" in url)  # the run before this one opened the menu
    code = link_of(teacher)["class_code"]
    teacher.wait_for_function("code => document.cookie.includes(code)", arg=code)  # by which the browser is known
    teacher.reload()
    settle(teacher)
    expect(teacher.locator(".st-key-join_class")).to_contain_text(code)
    expect(teacher.get_by_role("button", name="Reveal")).to_be_visible()

    student = open_app(beside=True, **LINK, class_code=code)
    expect(student.get_by_text("Your teacher reveals the answer.")).to_be_visible()
    expect(student.locator(".st-key-join_class")).to_have_count(0)

    finished = teacher.evaluate("probe.finished")
    with rerun(student):
        click_cell(panels(student, "expectation"), 2, 1, (5, 5))
    expect(teacher.locator(".st-key-tally")).to_contain_text("1 person has answered")
    expect(teacher.get_by_role("meter", name="key 1 “dog”")).to_have_attribute("aria-valuenow", "100")
    assert teacher.evaluate("probe.finished") == finished, "no script runs for it"

    with rerun(teacher):
        teacher.locator(".st-key-token_strip .chip").nth(4).click()
    with rerun(student):
        student.get_by_role("button", name="Your teacher asks another question").click()
    assert link_of(student)["query"] == link_of(teacher)["query"] == "4"

    student.get_by_role("button", name="Teach").click()
    expect(student.get_by_role("button", name="Leave the class")).to_be_visible()
    expect(student.get_by_role("button", name="I teach this class")).to_have_count(0)
