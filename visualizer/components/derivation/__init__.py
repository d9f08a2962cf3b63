"""The derivation of one number."""

from visualizer.components.derivation.element import Derivation, Step, Terms, derivation

__all__ = ["Derivation", "Step", "Terms", "derivation"]
