"""The card of one stop of a path."""

from visualizer.components.path_card.element import PathCard, path_card

__all__ = ["PathCard", "path_card"]
