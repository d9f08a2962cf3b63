"""What a person chooses in the view of any model, as one frozen value, and its part of the link."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from visualizer.settings.fields import Field, fields_of, setting
from visualizer.settings.link import read_part, write_part

Door = Literal["recording", "pretrained"]
Source = Literal["none", "example", "given", "path", "uploaded"]
Panel = Literal["heads", "compare", "operations", "write", "mask", "prove"]

Under = Literal["own", "other"]
Where = Literal["encoder", "decoder", "cross"]
NumberType = Literal["float32", "bfloat16"]

MOST_HEADS = 256
MOST_TOKENS = 2_048
MOST_PLACES = 9_999_999
MOST_WRITTEN = 64


@dataclass(frozen=True)
class WatchedChoice:
    """Which trace of another model is opened, and what is looked at in it.

    The places may lie beyond what a trace has; whoever looks them up takes the nearest.
    """

    watched_door: Door = setting(
        "recording",
        "Model",
        "Where the trace comes from.",
        choices={"recording": "Open a recording", "pretrained": "A pretrained model"},
    )
    watched_source: Source = setting(
        "none",
        "Recording",
        "The recording that is open. An uploaded one stays in the session and is in no link.",
        choices={
            "none": "None",
            "example": "The example",
            "given": "The file that the app was started with",
            "path": "A file of this machine",
            "uploaded": "An uploaded file",
        },
    )
    watched_path: str = setting(
        "",
        "Or the path of one on this machine",
        "A file that trace.save wrote, on the machine that serves this page. Only its memory limits the size, and "
        "nothing in it is run.",
    )
    watched_panel: Panel = setting(
        "heads",
        "Show",
        "All heads, one attention under another mask, every operation, how it writes on, the whole pass under "
        "another mask, or a test for leaks.",
        choices={
            "heads": "Heads",
            "compare": "Compare masks",
            "operations": "Step through",
            "write": "Write on",
            "mask": "Another mask in all",
            "prove": "Prove",
        },
    )
    watched_attention: str = setting("", "Attention", "The attention shown, by its path.")
    watched_item: int = setting(
        0, "Sequence", "The sequence of the batch that is shown, counted from 0.", most=1_023
    )
    watched_head: int = setting(0, "Head", "The head shown, counted from 0.", most=MOST_HEADS - 1)
    watched_query: int = setting(0, "Query", "The token that attends, counted from 0.", most=MOST_TOKENS - 1)
    watched_key: int = setting(0, "Key", "The token that is attended to, counted from 0.", most=MOST_TOKENS - 1)
    watched_first_query: int = setting(
        0,
        "First query drawn",
        "The first query that is drawn of a long text, counted from 0.",
        most=MOST_TOKENS - 1,
    )
    watched_first_key: int = setting(
        0,
        "First key drawn",
        "The first key that is drawn of a long text, counted from 0.",
        most=MOST_TOKENS - 1,
    )
    watched_mask: str = setting(
        "k <= q",
        "Another mask: allowed where",
        "An expression of the positions q and k, such as k <= q or abs(q - k) < 4. The weights of this attention "
        "alone are computed again, from its recorded queries, keys and biases.",
    )
    watched_stage: str = setting("", "Operation", "The operation shown, by its path.")
    watched_row: int = setting(0, "Row", "The row of the chosen number, counted from 0.", most=MOST_PLACES)
    watched_column: int = setting(0, "Column", "The column of the chosen number, counted from 0.", most=MOST_PLACES)
    pretrained_model: str = setting(
        "", "Checkpoint", "A name on the hub, a folder, or a GGUF file. What is on this machine stands first."
    )
    pretrained_text: str = setting(
        "When Mary and John went to the store, John gave a drink to",
        "Text",
        "What the model reads, cut into tokens by its own tokenizer.",
    )
    pretrained_second: str = setting(
        "",
        "Second text",
        "For an encoder the second of a pair of texts, for an encoder-decoder the decoder's text so far.",
    )
    pretrained_chat: bool = setting(
        False, "As a chat", "The text is a message to an assistant, in the checkpoint's chat template."
    )
    pretrained_batch: bool = setting(
        False,
        "Lines as a batch",
        "Each line of the text is one sequence; all are padded to one length, on the side that the tokenizer pads.",
    )
    pretrained_dtype: NumberType = setting(
        "float32",
        "Number type",
        "Of the weights in memory: bfloat16 takes half as much and is less exact.",
        choices={"float32": "float32", "bfloat16": "bfloat16"},
    )
    pretrained_device: str = setting("cpu", "Device", "Where the model is computed.")
    pretrained_mask: str = setting(
        "k <= q and q - k < 4",
        "Another mask",
        "Which keys a query may see, as in the Mask lab: a condition of the query's position q, the key's k and "
        "the head h, such as k <= q or abs(q - k) < 3.",
    )
    pretrained_under: Under = setting(
        "own",
        "Under",
        "Prove it under the model's own masks or under another one.",
        choices={"own": "Its own masks", "other": "Another mask"},
    )
    pretrained_sampling: bool = setting(
        False,
        "Sampling",
        "Draw each token by its probability, after temperature, top-k and top-p. Off: take the likeliest.",
    )
    pretrained_where: Where = setting(
        "decoder",
        "In",
        "The attentions of an encoder-decoder that the other mask is for.",
        choices={"encoder": "The encoder", "decoder": "The decoder", "cross": "The cross-attention"},
    )
    pretrained_steps: int = setting(
        8, "Tokens to write", "How many tokens it writes at most.", least=1, most=MOST_WRITTEN
    )


WATCHED: Mapping[str, Field] = fields_of(WatchedChoice)
"""Every parameter by name."""

NOTHING_WATCHED = WatchedChoice()
"""What the view opens with."""


def read_watched(query: Mapping[str, Sequence[str]]) -> tuple[WatchedChoice, tuple[str, ...]]:
    """Read this part of a link: the choice, and one plain sentence for each parameter that was changed."""
    choice, notices = read_part(query, NOTHING_WATCHED)
    return choice, tuple(notices.values())


def write_watched(choice: WatchedChoice) -> dict[str, str]:
    """This part of the link: what differs from the defaults."""
    return write_part(choice, NOTHING_WATCHED)
