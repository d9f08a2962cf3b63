"""Every symbol and term that the page writes has an entry, and its size is that of the run."""

from __future__ import annotations

from itertools import chain

import pytest

from tests.visualizer.sample_runs import VARIANTS, run_of, unmarked
from visualizer.glossary import AXES, GLOSSARY, entries_of_formula, mask_piece, pieces, shape_pieces
from visualizer.masks import MASK_NAMES
from visualizer.settings.fields import WORKED_EXAMPLES
from visualizer.stages.explanations import sentences
from visualizer.stages.registry import ENTRIES, formula_of
from visualizer.stages.sizes import sizes_of


@pytest.mark.parametrize("name", [*VARIANTS, *WORKED_EXAMPLES])
def test_every_symbol_of_every_formula_and_shape_has_an_entry(name):
    run = run_of(name)
    for path, stage in run.trace.items():
        assert entries_of_formula(formula_of(run, path))
        for symbol, _ in stage.dims:
            assert {part for part in symbol.split("*") if not part.isdigit()} <= AXES.keys()


@pytest.mark.parametrize(
    ("formula", "names"),
    [
        (r"S = Q_h K_h^\top", ["scores", "query", "key", "transposed"]),
        (r"\hat S = S / \sqrt{d_k}", ["scaled scores", "scores", "scaling"]),
        (r"Q = X_q W^{Q} + b^{Q}", ["query", "residual stream", "projection", "bias"]),
        (r"Q_h = Q[:, \text{head } h]", ["query", "head"]),
        (r"h = x W_1 + b_1", ["hidden unit", "residual stream", "feed-forward matrices", "bias"]),
        (r"C_h = \tilde A V_h", ["context", "weights after dropout", "value"]),
    ],
)
def test_the_symbols_of_a_formula_are_told_apart(formula, names):
    assert [entry.name for entry in entries_of_formula(formula)] == names


def test_a_symbol_without_an_entry_is_an_error():
    with pytest.raises(KeyError):
        entries_of_formula(r"S = \Omega")


def test_every_mark_leads_to_an_entry():
    entries = chain.from_iterable(ENTRIES.values())
    texts = [sentence.text for one in entries for text in (one.plain, one.exact) for sentence in sentences(text)]
    marked = {piece.entry for text in texts for piece in pieces(text) if piece.entry}
    marked |= {piece.entry for entry in GLOSSARY.values() for piece in pieces(entry.text) if piece.entry}
    marked |= {mask_piece(mask).entry for mask in MASK_NAMES}
    assert marked <= GLOSSARY.keys()


def test_no_symbol_stands_for_two_entries():
    latex = [symbol for entry in GLOSSARY.values() for symbol in entry.latex]
    assert len(latex) == len(set(latex))
    assert len({entry.symbol for entry in GLOSSARY.values() if entry.name in AXES.values()}) == len(AXES)


def test_every_entry_is_short_and_says_more_than_its_name():
    for entry in GLOSSARY.values():
        text = unmarked(entry.text)
        assert text.endswith(".")
        assert 15 < len(text) < 260, entry.name


def test_pieces_lose_nothing():
    marked = "Each [query](query) and [key]: (row) 1."
    assert [tuple(piece) for piece in pieces(marked)] == [
        ("Each ", ""),
        ("query", "query"),
        (" and ", ""),
        ("key", "key"),
        (": (row) 1.", ""),
    ]
    for shape in ("(B H Tq Tk) = (1, 4, 7, 7)", "(B T 3*H*Dh) = (1, 7, 24)", "(16, 16)"):
        assert "".join(text for text, _ in shape_pieces(shape)) == shape
    assert [entry for _, entry in shape_pieces("(B T H*Dh) = (1, 7, 8)") if entry] == [
        "batch",
        "tokens",
        "heads",
        "head width",
    ]


def test_sizes_are_those_of_the_run():
    sizes = sizes_of(run_of("encoder"))
    for stage in run_of("encoder").trace.values():
        for symbol, size in stage.dims:
            assert sizes[symbol] == str(size)
    assert sizes["Dk"] == "4"
    assert sizes["layers"] == "2"
    assert sizes["dropout"] == "off"
    assert sizes_of(run_of("dropout"))["dropout"] == "0.3"
    assert sizes_of(run_of("large epsilon"))["epsilon"] == "0.1"
    assert {"window": "2", "prefix": "3", "stride": "3"}.items() <= sizes_of(run_of("every mask")).items()
    assert not {"window", "prefix", "stride", "S"} & sizes.keys()


def test_sizes_that_differ_say_where():
    run = run_of("encoder-decoder")
    n_source, n_target = (len(run.tokens[name].labels) for name in ("source", "target"))
    sizes = sizes_of(run)
    assert n_source != n_target
    assert sizes["T"] == f"{n_source} (source), {n_target} (target)"
    assert sizes["Tk"] == f"{n_source} (source, cross-attention), {n_target} (target)"
    assert sizes["S"] == str(n_source)


def test_a_size_that_an_entry_names_is_found_in_some_run():
    found = set().union(*(sizes_of(run_of(name)) for name in (*VARIANTS, *WORKED_EXAMPLES)))
    assert {entry.size for entry in GLOSSARY.values() if entry.size} - found <= {"Tn", "Do"}
