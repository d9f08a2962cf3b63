"""The tokens of the run, one chip each."""

from visualizer.components.token_strip.element import (
    Token,
    TokenChoice,
    TokenSequence,
    parse_token,
    token_strip,
)

__all__ = ["Token", "TokenChoice", "TokenSequence", "parse_token", "token_strip"]
