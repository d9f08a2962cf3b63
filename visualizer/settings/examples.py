"""Eight examples that a click opens, each with something to see at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from visualizer.settings.fields import TRAINED
from visualizer.settings.fitting import fitted
from visualizer.settings.settings import Selection, Settings, default_stage


@dataclass(frozen=True)
class Example:
    """A finished choice of settings.

    Attributes:
        name: what code and tests call it.
        title: what its button says.
        what_to_see: one sentence that says where to look.
        settings: what is run.
        selection: what is looked at.
        speaks_of: the places of the selection, beside the view and the stage, without which the sentence is not
            about what is seen.
    """

    name: str
    title: str
    what_to_see: str
    settings: Settings
    selection: Selection
    speaks_of: tuple[str, ...] = ()

    def is_seen(self, settings: Settings, selection: Selection) -> bool:
        """Whether this is what the sentence is about."""
        places = ("view", "stage", "hidden", *self.speaks_of)  # what is hidden is not told
        return settings == self.settings and all(
            getattr(selection, place) == getattr(self.selection, place) for place in places
        )


EXAMPLES = (
    Example(
        name="repeated_words",
        title="Repeated words",
        what_to_see="The same-token head joins every word to its other occurrences and to nothing else.",
        settings=Settings(text="the dog saw the cat and the cat saw the dog", mask=()),
        selection=Selection(view="heads", head=2, query=7, key=4),
        speaks_of=("layer",),
    ),
    Example(
        name="padding",
        title="Padded text",
        what_to_see="The hatched columns are padding: the uniform head shares its weight among the words only.",
        settings=Settings(
            text="Padding brings every sentence to one length",
            n_heads=8,
            d_model=128,
            mask=("padding",),
            pad=3,
        ),
        selection=Selection(head=5, query=3, key=7),
        speaks_of=("layer", "head"),
    ),
    Example(
        name="translation",
        title="Translation",
        what_to_see="German puts the verb last: to write “war” after “müde” (row 10), head 3 of layer 1 looks at "
        "“was” (column 8).",
        settings=fitted(
            Settings(weights=TRAINED, task="small_translator", text="The cat sat on the mat because it was tired.")
        ),
        selection=Selection(
            view="heads", stage="decoder.cross_attention.weights", layer=1, head=3, query=10, key=8
        ),
        speaks_of=("layer", "head", "query", "key"),
    ),
    Example(
        name="writing",
        title="Write a sentence",
        what_to_see="The model writes on, a word at a time: each bar is the probability that it gives a next word.",
        settings=fitted(Settings(weights=TRAINED, task="small_english", text="The cat sat on the mat because")),
        selection=Selection(view="generate", stage=default_stage("decoder"), query=7),
    ),
    Example(
        name="reverse",
        title="Learned to reverse",
        what_to_see="Nobody told this model how: to write each letter, cross-attention looks it up at its place "
        "from the end of the source.",
        settings=fitted(Settings(weights=TRAINED, task="reverse", text="headlight")),
        selection=Selection(view="heads", stage="decoder.cross_attention.weights", head=0, query=0, key=8),
    ),
    Example(
        name="predict_head",
        title="Predict a head",
        what_to_see="This head was built to look at the previous token: mark in each row where you expect the "
        "most, then reveal it.",
        settings=Settings(text="the dog saw the cat", mask=("causal",)),
        selection=Selection(view="heads", head=0, query=2, key=1, hidden=True),
        speaks_of=("layer", "head", "question"),
    ),
    Example(
        name="predict_mask",
        title="Predict a mask",
        what_to_see="B has two masks at once: mark every cell that both leave open, then reveal it.",
        settings=Settings(text="the dog saw the cat", window=2),
        selection=Selection(view="compare", mask_b=("causal", "sliding_window"), query=3, key=2, hidden=True),
        speaks_of=("question", "mask_b"),
    ),
    Example(
        name="single_token",
        title="One token",
        what_to_see="With one key there is nothing to choose: whatever the score, its weight is exactly 1.",
        settings=Settings(text="Hello", mask=()),
        selection=Selection(head=0, query=0, key=0),
    ),
)
"""In the order of the buttons."""

OPENING = Example(
    name="opening",
    title="Opening picture",
    what_to_see="After “was” the model expects “tired”, “old” or “lazy”, as it is with cats: heads of the last "
    "layer look back at “the” and “sat”.",
    settings=fitted(Settings(weights=TRAINED, task="small_english", text="The cat sat on the mat because it was")),
    selection=Selection(view="way", stage=default_stage("decoder"), query=9),
    speaks_of=("query",),
)
"""What an address without any parameter opens; any other leaves out the fields that are as in ``Settings()``."""

USUAL = Example(
    name="usual",
    title="The weights of a head",
    what_to_see="The second “cat” (row 8) gives half of its weight to the first (column 1). Click a cell to see "
    "how its number is computed.",
    settings=Settings(),
    selection=Selection(),
    speaks_of=("layer", "head", "query", "key"),
)


def note_on(examples: Iterable[Example], settings: Settings, selection: Selection) -> str:
    """Where to look, if this is the picture of one of the examples; else nothing."""
    seen = (example.what_to_see for example in examples if example.is_seen(settings, selection))
    return next(seen, "")
