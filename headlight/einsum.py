"""Products that an einsum writes, by the letters of their axes."""

from __future__ import annotations

from torch import Tensor

Matrices = tuple[Tensor, Tensor, Tensor]
"""Weights (..., Tq, Tk), values (..., Tk, Dv) and their product (..., Tq, Dv)."""


def letters_of(equation: str, *n_axes: int) -> list[list[str]]:
    """The letters of the axes of both operands and of the result of an einsum, "..." as capitals of its own."""
    operands, _, result = equation.replace(" ", "").partition("->")
    texts = [*operands.split(","), result]
    n_more = [n - len(text.replace("...", "")) for text, n in zip(texts[:-1], n_axes, strict=True)]
    most = max((n for n, text in zip(n_more, texts[:-1], strict=True) if "..." in text), default=0)
    more = [f"{i}" for i in range(most)]
    found = []
    for text, n in zip(texts, (*n_more, most), strict=True):
        first, dots, last = text.partition("...")
        found.append([*first, *(more[most - n :] if dots else []), *last])
    return found


def arranged(tensor: Tensor, letters: list[str], wanted: list[str]) -> Tensor:
    """A tensor with its axes in another order, and one of size 1 for each that it has not."""
    order = [letter for letter in wanted if letter in letters]
    ordered = tensor.permute([letters.index(letter) for letter in order])
    return ordered[tuple(slice(None) if letter in letters else None for letter in wanted)]


def as_matrices(key: str, *lettered: tuple[Tensor, list[str]]) -> Matrices | None:
    """The weights, the values and the product of an einsum as matrices, by the letters of their axes.

    None where more is summed over than the axis ``key``, which both factors have.
    """
    (weights, of_weights), (values, of_values), (product, of_product) = lettered
    queries = [letter for letter in of_weights if letter in of_product and letter not in of_values]
    columns = [letter for letter in of_values if letter in of_product and letter not in of_weights]
    if not queries or len(columns) != 1 or {*of_weights, *of_values} - {key, *of_product}:
        return None
    shared = [letter for letter in of_product if letter not in (queries[-1], columns[0])]
    return (
        arranged(weights, of_weights, [*shared, queries[-1], key]),
        arranged(values, of_values, [*shared, key, columns[0]]),
        arranged(product, of_product, [*shared, queries[-1], columns[0]]),
    )
