"""The tokens of the run, one chip each."""

from visualizer.components.token_strip.element import (
    Token,
    TokenSequence,
    parse_token,
    token_strip,
)

__all__ = ["Token", "TokenSequence", "parse_token", "token_strip"]
