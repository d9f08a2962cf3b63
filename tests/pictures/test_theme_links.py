"""The links to the themes, on a page that does not listen to them."""

from __future__ import annotations

from visualizer.components.theme_links.element import theme_links


def test_a_theme_that_was_left_by_going_back_does_not_load_the_page_again(show):
    page = show([theme_links({"light": {}, "dark": {}}, key="themes")])
    page.route("**/?embed_options=*", lambda route: route.abort())  # where it would be loaded from
    page.evaluate("window.sameDocument = true")
    page.clock.install()
    page.get_by_text("Dark").click()
    page.evaluate("dispatchEvent(new PopStateEvent('popstate'))")
    page.clock.run_for(10_000)
    assert page.evaluate("window.sameDocument")
