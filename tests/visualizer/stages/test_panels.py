"""Parameters as panels."""

import numpy as np
import pytest

from visualizer.runs.compute import compute_run
from visualizer.settings.settings import Settings
from visualizer.stages.operands import Operand
from visualizer.stages.panels import head_panels, operand_panel, rows_of_table
from visualizer.stages.registry import operands_of

SENTENCE = Settings(text="the cat sat on the mat", weights="trained", task="small_english")
TWO_VOCABULARIES = Settings(
    text=" ".join(f"s{i}" for i in range(40)),
    target=" ".join(f"t{i}" for i in range(40)),
    architecture="encoder-decoder",
    shared_vocabulary=False,
)


def table_of(run, path: str) -> Operand:
    (table,) = operands_of(run, path)
    return table


def test_of_a_large_embedding_table_the_rows_of_the_text_are_drawn_with_their_ids():
    run = compute_run(SENTENCE)
    panel = operand_panel(run, table_of(run, "decoder.inputs.embedding"), head=0, batch=0)
    ids = sorted(set(run.tokens["source"].ids))
    assert panel.rows.numbers == tuple(ids)
    assert panel.rows.labels == tuple(run.vocabulary[one] for one in ids)
    assert panel.title.endswith("the rows of this text")
    by_id = dict(zip(ids, panel.array, strict=True))
    embedding = run.trace["decoder.inputs.embedding"].value[0].numpy()
    for token_id, row in zip(run.tokens["source"].ids, embedding, strict=True):
        np.testing.assert_array_equal(by_id[token_id], row)


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_each_of_two_embedding_tables_has_the_rows_of_its_own_text(stack):
    run = compute_run(TWO_VOCABULARIES)
    sequence = "source" if stack == "encoder" else "target"
    rows = rows_of_table(run, table_of(run, f"{stack}.inputs.embedding"))
    assert set(rows) == set(run.tokens[sequence].ids)


def test_a_small_embedding_table_is_drawn_whole():
    run = compute_run(Settings(text="a b"))
    panel = operand_panel(run, table_of(run, "encoder.inputs.embedding"), head=0, batch=0)
    assert panel.rows.labels == run.vocabulary
    assert panel.rows.numbers == ()


def test_a_head_that_its_mask_leaves_only_itself_says_so():
    path = "encoder.layers.0.self_attention.weights"
    for mask, name in (((), "next token"), (("causal",), "next token (causal: mostly itself)")):
        run = compute_run(Settings(text="a b c", mask=mask))
        assert head_panels(run, path, batch=0)[1].title == f"head 1 · {name}"
