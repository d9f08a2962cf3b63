"""A text that was pasted: its statements by Python's parser, and where a part of them stands in it."""

from __future__ import annotations

import ast
import re

from headlight.masks.language.spelling import MaskExpressionError, check_signs
from model.texts import texts_of

say = texts_of(__name__)

_HEAD = "if True:\n"
_FIRST = re.compile(r"^ {1,3}(?=\S)")
_RUN = re.compile(r"(?<=\S) {3,}(?=\S)")
_OPENED = re.compile(r":( {3,})(?=\S)")
_NEW_LINE = re.compile(r"(?<=[^\s,(=:]) {1,2}(?=(?:def|return) |[A-Za-z_]\w* = )")


class PastedText:
    """One text, whose places are counted in characters from its beginning."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._lines = _with_line_breaks(text).split("\n")
        first = next((line for line in self._lines if line.strip()), "")
        self._head = _HEAD if first[:1].isspace() else ""

    def statements(self) -> list[ast.stmt]:
        """Parse the text into statements.

        Raises:
            MaskExpressionError: Python's parser cannot read it; the place is the parser's own.
        """
        try:
            body = ast.parse(self._head + "\n".join(self._lines)).body
        except SyntaxError as error:
            check_signs(self.text)
            start = self._offset(error.lineno or 1, (error.offset or 1) - 1)
            end = self._offset(error.end_lineno or 1, (error.end_offset or 1) - 1)
            what = say("python_refuses", message=error.msg)
            raise MaskExpressionError(what, start, max(start + 1, end)) from None
        except ValueError:
            raise MaskExpressionError(say("unreadable_character"), 0, len(self.text)) from None
        match body:
            case [ast.If(body=inner)] if self._head:
                return inner
        return body

    def place(self, node: ast.stmt | ast.expr) -> tuple[int, int]:
        """Return the positions in the text at which a part of the statements begins and ends."""
        start = self._offset(node.lineno, self._column(node.lineno, node.col_offset))
        line = node.end_lineno or node.lineno
        return start, self._offset(line, self._column(line, node.end_col_offset or node.col_offset))

    def _offset(self, line: int, column: int) -> int:
        before = self._lines[: line - 1 - self._head.count("\n")]
        return min(len(self.text), sum(len(text) + 1 for text in before) + column)

    def _column(self, line: int, n_bytes: int) -> int:
        """Characters of a line, of which the parser counts bytes."""
        text = self._lines[line - 1 - self._head.count("\n")]
        return len(text.encode()[:n_bytes].decode(errors="ignore"))


def _with_line_breaks(text: str) -> str:
    """The text with its line breaks back where a field of one line has made a blank of each; as long as before."""
    text = re.sub(r"\r(?!\n)", "\n", text)
    if "\n" in text or not re.search(r"\b(def|return)\b", text):
        return text
    opened = _OPENED.search(text)
    by_four = opened is None or len(opened[1]) > 4
    text = _RUN.sub(lambda run: _broken(run, by_four=by_four), _FIRST.sub(_line_breaks, text))
    return _NEW_LINE.sub(_line_breaks, text)


def _line_breaks(blanks: re.Match[str]) -> str:
    return "\n" * len(blanks.group())


def _broken(run: re.Match[str], *, by_four: bool) -> str:
    """Line breaks, and the indentation after them: a multiple of four, or two."""
    indent = len(run.group()) - 1
    indent -= indent % (4 if by_four else 2)
    return "\n" * (len(run.group()) - indent) + " " * indent
