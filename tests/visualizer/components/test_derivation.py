"""The words of the picture of a derivation, before it is drawn."""

import math
from dataclasses import replace

import numpy as np
import pytest

from visualizer.components.derivation.element import (
    Derivation,
    Step,
    Terms,
    blocked_elements,
    derivation,
    describe_derivation,
    format_number,
    verdict,
)

DOT_PRODUCT = Derivation(
    title="score of query 0, key 1",
    columns=("0", "1", "2"),
    rows=(
        Terms("query 0", "query", np.array([1.0, 2.0, 3.0])),
        Terms("key 1", "key", np.array([0.5, -1.0, 0.0]), "×"),
        Terms("product", "weights", np.array([0.5, -2.0, 0.0]), "="),
    ),
    steps=(Step("sum of the products", -1.5),),
    result=-1.5,
    formula="s = q · k",
    agrees=True,
    difference=0.0,
)


def step_texts(content: Derivation) -> list[tuple[str, str]]:
    return [(step["text"], step["value"]) for step in describe_derivation(content, "key")["steps"]]


def test_the_last_step_gives_the_result():
    assert step_texts(DOT_PRODUCT) == [("sum of the products", "−1.5")]


def test_a_result_that_no_step_gives_is_added_as_the_last():
    assert step_texts(replace(DOT_PRODUCT, result=0.0))[-1] == ("result", "0")
    assert step_texts(replace(DOT_PRODUCT, steps=())) == [("result", "−1.5")]


def test_rows_carry_their_role_and_operator():
    rows = describe_derivation(DOT_PRODUCT, "key")["rows"]
    assert [(row["operator"], row["label"], row["role"]) for row in rows] == [
        ("", "query 0", "query"),
        ("×", "key 1", "key"),
        ("=", "product", "weights"),
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.25, "−0.25"),
        (1.23456789, "1.2346"),
        (123456789.0, "1.2346e+08"),
        (1e-9, "1e−09"),
        (-math.inf, "−∞"),
        (math.inf, "∞"),
        (math.nan, "NaN"),
    ],
)
def test_numbers_are_written_with_five_digits(value, text):
    assert format_number(value) == text


def test_an_exact_result_says_so():
    assert verdict(DOT_PRODUCT) == "equals the model's number exactly"


def test_a_result_within_the_precision_says_how_near():
    assert verdict(replace(DOT_PRODUCT, difference=3.1e-8)) == "equals the model's number to 3e-08"


@pytest.mark.parametrize("difference", [0.25, math.nan, math.inf])
def test_a_wrong_result_is_not_called_equal(difference):
    text = verdict(replace(DOT_PRODUCT, agrees=False, difference=difference))
    assert text.startswith("differs from the model's number by")


def test_no_element_is_blocked_without_a_mask():
    assert not blocked_elements(DOT_PRODUCT).any()


def test_an_element_with_a_value_of_minus_infinity_is_blocked():
    rows = (Terms("score", "weights", np.array([1.0, -np.inf, 2.0])), *DOT_PRODUCT.rows)
    assert blocked_elements(replace(DOT_PRODUCT, rows=rows)).tolist() == [False, True, False]


def test_blocked_elements_can_be_named():
    assert blocked_elements(replace(DOT_PRODUCT, blocked=(True, False, False))).tolist() == [True, False, False]


@pytest.mark.parametrize(
    "changes",
    [{"rows": (Terms("query 0", "query", np.zeros(2)),)}, {"blocked": (True,)}, {"columns": ("0",)}],
)
def test_a_row_of_another_length_is_refused(changes):
    with pytest.raises(ValueError, match="one value for each of"):
        derivation(replace(DOT_PRODUCT, **changes), key="key")


def test_the_result_has_the_role_of_the_last_row():
    assert describe_derivation(DOT_PRODUCT, "key")["role"] == "weights"
    assert describe_derivation(replace(DOT_PRODUCT, columns=(), rows=()), "key")["role"] == "neutral"


def test_steps_alone_need_no_elements():
    content = replace(DOT_PRODUCT, columns=(), rows=())
    assert blocked_elements(content).shape == (0,)
    assert describe_derivation(content, "key")["rows"] == []
