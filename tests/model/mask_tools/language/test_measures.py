"""What is counted of a measure, and the cells of its numbers, are those of the words that are said for them."""

import pytest
import torch

from model.mask_tools.language import parse
from model.mask_tools.language.cells import rows_of
from model.mask_tools.language.measures import Grids
from tests.model.mask_tools.language.pieces import plain_context


@pytest.mark.parametrize("size", [(1, 1), (9, 9), (5, 12), (11, 4), (1, 7)])
def test_each_number_of_each_measure_has_the_cells_of_its_words(size):
    context = plain_context(*size, n_padding=1, n_segments=2)
    grids = Grids(context)
    some = torch.rand(size, generator=torch.Generator().manual_seed(0)) < 0.5
    counts = grids.counts(grids.plane.in_rows(rows_of(some))).tolist()
    for grid, measure, place in grids.measures:
        for number in range(measure.size):
            cells = parse(measure.said((number, number))).evaluate(context)
            chosen = grid.chosen(measure, (number, number))
            assert torch.equal(grids.plane.tensor(chosen).bool(), cells)
            assert grids.plane.columns(chosen) == rows_of(cells.T)
            assert counts[place + number] == int((cells & some).sum())
    assert len(counts) == place + measure.size
