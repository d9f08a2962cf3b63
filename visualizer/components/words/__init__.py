"""Lines of words, some of which open the glossary."""

from visualizer.components.words.element import words

__all__ = ["words"]
