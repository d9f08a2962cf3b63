"""The tree of a model's operations on a static page: its height, and what is in sight of it."""

from __future__ import annotations

from playwright.sync_api import expect

from visualizer.components.module_tree.element import CalledOperation, module_tree

N_LAYERS = 200
OPERATIONS = [
    CalledOperation(f"model.layers.{layer}.{module}", name)
    for layer in range(N_LAYERS)
    for module in ("attention", "mlp")
    for name in ("linear", "linear_2", "add")
]


def test_however_many_layers_there_are_the_tree_is_low_and_shows_the_current_operation(show):
    page = show([module_tree(OPERATIONS, len(OPERATIONS) - 1, seq=0, key="tree")], height=720)
    tree, current = page.locator(".module-tree > .tree-items"), page.locator(".tree-chip[aria-current=step]")
    expect(current).to_be_in_viewport()
    box = tree.bounding_box()
    assert box is not None
    assert box["height"] < 200
    tree.evaluate("tree => (tree.scrollTop = 0)")
    expect(current).not_to_be_in_viewport()
    page.locator(".tree-fold", has_text="3").first.click()
    expect(current).not_to_be_in_viewport()  # who folds looks at something else
    page.keyboard.press("ArrowLeft")
    expect(current).to_be_in_viewport()
