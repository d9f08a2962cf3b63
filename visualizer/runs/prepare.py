"""From what was chosen to what is needed to run it: the tokens, the masks and the cost, each found once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from headlight.pretrained.tokenized import TooLongError
from visualizer.components.axis import SequenceName
from visualizer.runs.checkpoints import batches_of, input_of, n_bytes_of, refused
from visualizer.runs.checkpoints import checkpoint_of as opened_checkpoint
from visualizer.runs.limits import problem_with_size, problem_with_text, way_out
from visualizer.runs.masks_in_force import Masks, promised_masks, readable_painting
from visualizer.runs.needed_memory import bytes_for
from visualizer.runs.refusals import RefusedError
from visualizer.runs.score_changes import readable_change
from visualizer.runs.tokens import Encoded, TokenSequence, encode
from visualizer.runs.trained import checkpoint_of, encode_trained, shape_of
from visualizer.settings.fields import PRETRAINED, TRAINED, WORKED_EXAMPLES
from visualizer.settings.settings import Settings


@dataclass(frozen=True, eq=False)
class Prepared:
    """Everything that a run needs, and what it will cost.

    Attributes:
        settings: what is run: without what cannot be read, and for a trained model with the shape that it has.
        encoded: the tokens; None for a worked example, which brings its own inputs, and for a checkpoint.
        promised: the masks that were chosen, for each attention.
        complaints: one sentence for each part of the painted mask, or change of the scores, that cannot be read.
        n_bytes: the memory of the run; 0 for those that are always small.
    """

    settings: Settings
    encoded: Encoded | None
    promised: Masks
    complaints: tuple[str, ...] = ()
    n_bytes: int = 0

    @property
    def batches(self) -> Mapping[SequenceName, tuple[TokenSequence, ...]]:
        """The sequences that are computed at once."""
        return {} if self.encoded is None else _batches(self.encoded)


def prepare(settings: Settings) -> Prepared:
    """Read the texts and the masks of some settings.

    Raises:
        RefusedError: there is nothing to run or too much; the message is one sentence with what to do.
        ValueError: a text is none of the task that the model was trained on, or that model is forgotten; or a
            checkpoint is not in memory, or cannot read the text.
    """
    if settings.weights in WORKED_EXAMPLES:
        return Prepared(settings, None, {})
    if settings.weights == PRETRAINED:
        try:
            batches = batches_of(input_of(settings))
            n_bytes = n_bytes_of(opened_checkpoint(settings), batches)
        except TooLongError as error:
            raise refused(settings, error) from error
        settings, complaints = readable_painting(settings, batches)
        return Prepared(settings, None, {}, complaints, n_bytes)
    settings, of_scores = readable_change(settings)
    if problem := problem_with_text(settings):
        raise RefusedError(problem, way_out(settings))
    if settings.weights == TRAINED:
        encoded, n_bytes = encode_trained(settings), 0
        settings = replace(settings, **shape_of(checkpoint_of(settings)))
    else:
        encoded = encode(settings)
        n_bytes = bytes_for(settings, encoded)
        if problem := problem_with_size(settings, encoded, n_bytes):
            raise RefusedError(problem, way_out(settings))
    batches = _batches(encoded)
    settings, complaints = readable_painting(settings, batches)
    promised = promised_masks(settings, batches)
    return Prepared(settings, encoded, promised, (*complaints, *of_scores), n_bytes)


def _batches(encoded: Encoded) -> dict[SequenceName, tuple[TokenSequence, ...]]:
    batches: dict[SequenceName, tuple[TokenSequence, ...]] = {"source": encoded.sources}
    return batches if encoded.targets is None else {**batches, "target": encoded.targets}
