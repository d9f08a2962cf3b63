"""What is told about each stage, at two depths: one entry per kind of stage.

The plain text is one story carried through all stages, of a library: every token has a *card* (its vector), writes
a *slip* with what it looks for (its query), and has a *book* with a label on its *spine* (its key) and its content
(its value); a *head* is a librarian with a question of its own. The exact text says what is computed.

A text is a row of sentences, some of which are told only where a ``Fact`` of the run holds. ``{d_k}`` stands for a
number of the run, and ``[words]`` or ``[words](entry)`` for words that open an entry of the glossary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from visualizer.colors import Role
from visualizer.settings.settings import Depth

OfAttention = Literal[
    "self", "cross", "memory", "one_head", "several_heads", "projected", "unprojected", "scaled", "unscaled"
]
OfMask = Literal[
    # how an attention is masked, of which exactly one holds; the last two are mask bugs
    "unmasked", "blocks_nothing", "masked", "scores_zeroed", "masked_late",
    "several_masks", "keyless", "causal", "padding", "sliding_window", "prefix", "strided", "custom",
]  # fmt: skip
OfPart = Literal[
    "dropout", "no_dropout", "in_layer", "alone", "pre_norm", "post_norm", "relu", "gelu",
    "after_self_attention", "after_cross_attention", "after_feed_forward",
]  # fmt: skip
OfPositions = Literal["sinusoidal", "learned", "without_positions", "some_positions", "counted_from_first"]
OfWeights = Literal["trained", "untrained", "hand_built", "random"]
OfOutput = Literal["output_bias", "answers_in_place", "expects_next"]
Fact = OfAttention | OfMask | OfPart | OfPositions | OfWeights | OfOutput
"""What may be true of a stage in a run, and so may be told."""


@dataclass(frozen=True)
class If:
    """A sentence that is told only where all of ``facts`` hold."""

    facts: tuple[Fact, ...]
    text: str


Sentence = str | If


@dataclass(frozen=True)
class Facts:
    """What is true of a stage in a run.

    Attributes:
        holding: the facts that hold.
        values: what the placeholders of the texts stand for.
    """

    holding: frozenset[Fact]
    values: Mapping[str, str]


@dataclass(frozen=True)
class Explanation:
    """What a person is told about a stage.

    Attributes:
        title: its name in words.
        role: its colour.
        plain: the sentences of the story.
        exact: the sentences that say what is computed.
        left_out: the inputs, by name, that its picture leaves out.
    """

    title: str
    role: Role
    plain: tuple[Sentence, ...]
    exact: tuple[Sentence, ...]
    left_out: tuple[str, ...] = ()

    def told(self, depth: Depth, facts: Facts) -> str:
        """The text at a depth where ``facts`` hold, with the marks of the words that open the glossary."""
        sentences = self.plain if depth == "plain" else self.exact
        told = (
            sentence if isinstance(sentence, str) else sentence.text
            for sentence in sentences
            if isinstance(sentence, str) or facts.holding.issuperset(sentence.facts)
        )
        return " ".join(told).format_map(facts.values)


# Sentences that several stages share.

_EACH_MASK = (
    If(("causal",), "[Causal](causal): no reader opens a book that stands after its own place."),
    If(("padding",), "[Padding](padding): books that only fill the shelf stay shut."),
    If(("sliding_window",), "[Sliding window](sliding window): only books near the reader's own place are open."),
    If(
        ("prefix",),
        "[Prefix](prefix): the first books are open to all, later ones only to those who stand at them or after.",
    ),
    If(("strided",), "[Strided](strided): counted from its own place, only one book in so many is open."),
    If(("custom",), "[Painted](painted mask): locked cell by cell, as painted, written or given."),
)
_UNTRAINED = "The weights are not trained: this shows how the output is computed, not what is good language."


EXPLANATIONS: Mapping[tuple[str, str], Explanation] = {
    ("inputs", "embedding"): Explanation(
        "Token embedding",
        "residual",
        plain=(
            "Every [token] gets a card: a list of {d_model} numbers, fetched from a table by the token's id. Equal "
            "tokens get equal cards, wherever they stand.",
            If(("trained",), "Training wrote this table."),
            If(("hand_built",), "This table was written by hand."),
            If(("random",), "This table is random: nothing was learned yet."),
        ),
        exact=(
            "Each token's id picks one row of the [embedding] table, which has {d_model} numbers for each of the "
            "{vocab_size} tokens of the [vocabulary]. Nothing here knows where a token stands.",
            If(("trained",), "The table was learned."),
            If(("hand_built",), "The table was filled by hand."),
            If(("random",), "The table was drawn at random."),
        ),
    ),
    ("inputs", "scaled_embedding"): Explanation(
        "Scaled embedding",
        "residual",
        plain=(
            "The numbers of every card are multiplied by {root_d_model}.",
            If(("some_positions",), "So what the token is will not drown in where it stands, which is added next."),
        ),
        exact=(
            "The [embeddings](embedding) are multiplied by √d_model = {root_d_model} (section 3.4).",
            If(
                ("some_positions",),
                "The entries of such a table are usually about 1/√d_model in size, and this brings them to the "
                "size of the positions.",
            ),
        ),
    ),
    ("inputs", "positional_encoding"): Explanation(
        "Positional encoding",
        "residual",
        plain=(
            If(
                ("some_positions",),
                "A card does not say where its token stands, so every place gets a stamp of its own, its "
                "[position](positional encoding).",
            ),
            If(
                ("sinusoidal",),
                "It is made of waves, quick ones on the left and slow ones on the right, like the "
                "hands of a clock.",
            ),
            If(("learned", "trained"), "Training wrote these stamps."),
            If(("learned", "hand_built"), "The stamps could be learned; here they are filled with waves by hand."),
            If(("learned", "random"), "The stamps could be learned; here they are still random."),
            If(
                ("without_positions",),
                "No place gets a stamp here, its [position](positional encoding): all zeros. A card does not say "
                "where its token stands.",
            ),
        ),
        exact=(
            If(("some_positions",), "Attention by itself does not see order, so every position gets a vector."),
            If(
                ("sinusoidal",),
                "These are [sinusoids](positional encoding): sines in the even columns and cosines in the odd "
                "ones, fast on the left and slow on the right (section 3.5).",
            ),
            If(("learned",), "Each is a row of a table with one [vector per position](positional encoding)."),
            If(("learned", "trained"), "The table was learned."),
            If(("learned", "hand_built"), "The table is filled with the sinusoids by hand: nothing was learned."),
            If(("learned", "random"), "The table was drawn at random."),
            If(
                ("without_positions",),
                "[Positions](positional encoding) are left out, which is all zeros: nothing in a vector says "
                "where its token stands.",
            ),
            If(("counted_from_first",), "Positions count from the first token that is no [padding]."),
        ),
        left_out=("table",),
    ),
    ("inputs", "embedded"): Explanation(
        "Embedding plus position",
        "residual",
        plain=(
            If(
                ("some_positions",),
                "Card and stamp are added: one list of numbers says what a token is and where it stands.",
            ),
            If(("without_positions",), "The stamps are zero, so the cards stay as they were."),
            If(("dropout",), "Then [dropout] strikes out some of the numbers by chance, as in training."),
            If(
                ("in_layer",),
                "The card goes with its token through all layers, and what is found on the way is added to it.",
            ),
            If(("alone",), "From this card each token asks, and is found."),
        ),
        exact=(
            If(("some_positions",), "The sum of what a token is and where it stands."),
            If(("without_positions",), "The scaled embedding plus zero, since positions are left out."),
            If(
                ("dropout",),
                "[Dropout](dropout) follows: it sets each number to zero with probability {p} and "
                "divides the others by 1 - {p}.",
            ),
            If(
                ("in_layer",),
                "Here the [residual stream] begins: every sub-layer reads it and adds its output to it.",
            ),
            If(("alone",), "It is all that the attention reads."),
        ),
    ),
    ("attention", "query_input"): Explanation(
        "Input of the queries",
        "residual",
        plain=(
            "[Attention] is a library. The cards enter as readers: each token will write down what it looks for. "
            "It has a book on the shelf too, so its card serves three times.",
        ),
        exact=(
            "The vectors that ask. In [self-attention] the same tensor also serves the [keys](key) and the "
            "[values](value).",
        ),
    ),
    ("attention", "key_input"): Explanation(
        "Input of the keys",
        "residual",
        plain=("The same cards once more: from each will be made what stands on the spine of the token's book.",),
        exact=(
            "The vectors that are looked up. In [self-attention] this is the very tensor that the "
            "[queries](query) come from.",
        ),
    ),
    ("attention", "value_input"): Explanation(
        "Input of the values",
        "residual",
        plain=("The same cards a third time: from each will be made what stands in the token's book.",),
        exact=("The vectors whose content is passed on. In [self-attention] this is the same tensor once more.",),
    ),
    ("attention", "cross_query_input"): Explanation(
        "Input of the queries",
        "residual",
        plain=(
            "[Attention] is a library, and here two texts meet in it. The tokens of the target are the readers: "
            "each will write down what it looks for in the source.",
        ),
        exact=(
            "The vectors that ask. In [cross-attention] they are those of the target: each of its tokens asks "
            "about the source.",
        ),
    ),
    ("attention", "cross_key_input"): Explanation(
        "Input of the keys",
        "residual",
        plain=(
            "The cards of the source, whose tokens have the books.",
            If(("memory",), "They come as the [encoder] left them."),
            "From each will be made what stands on the spine.",
        ),
        exact=(
            "The vectors that are looked up. In [cross-attention] they are those of the source, one for each "
            "source token.",
            If(("memory",), "They are the output of the [encoder]."),
        ),
    ),
    ("attention", "cross_value_input"): Explanation(
        "Input of the values",
        "residual",
        plain=("The cards of the source once more: from each will be made what stands in the book.",),
        exact=(
            "The vectors whose content is passed on. In [cross-attention] they are those of the source.",
            If(("memory",), "They are the output of the [encoder] once more."),
        ),
    ),
    ("attention", "q_proj"): Explanation(
        "Query projection",
        "query",
        plain=(
            "From its card every token makes a slip, its [query]: what it looks for.",
            If(("several_heads",), "It makes {n_heads} of them, side by side: one for each [head]."),
        ),
        exact=(
            "One [linear layer] turns the vector of every token that asks into its [query], what it looks for.",
            If(
                ("several_heads",),
                "It does so for all {n_heads} [heads](head) at once: each owns {d_k} neighbouring columns.",
            ),
        ),
    ),
    ("attention", "k_proj"): Explanation(
        "Key projection",
        "key",
        plain=(
            "From its card every token makes what stands on the spine of its book, its [key]: what it is found by.",
            If(("several_heads",), "It makes {n_heads} spines, one for each [head]."),
        ),
        exact=(
            "One [linear layer] turns the vector of every token that can be attended to into its [key], what it is "
            "found by.",
            If(
                ("several_heads",),
                "It does so for all {n_heads} [heads](head) at once: each owns {d_k} neighbouring columns.",
            ),
        ),
    ),
    ("attention", "v_proj"): Explanation(
        "Value projection",
        "value",
        plain=(
            "From its card every token makes what stands in its book, its [value]: what a reader takes home.",
            If(("several_heads",), "It makes {n_heads} books, one for each [head]."),
        ),
        exact=(
            "One [linear layer] turns the vector of every token that can be attended to into its [value], what it "
            "hands over.",
            If(
                ("several_heads",),
                "It does so for all {n_heads} [heads](head) at once: each owns {d_v} neighbouring columns.",
            ),
        ),
    ),
    ("attention", "qkv"): Explanation(
        "Queries, keys and values in one",
        "neutral",
        plain=(
            "From its card every token makes all three at once: its slip, the spine of its book and the book, side "
            "by side in one row. They are its [query], its [key] and its [value].",
        ),
        exact=(
            "One matrix makes [queries](query), [keys](key) and [values](value) at once: it holds the three "
            "matrices side by side, and so does its result. One large product is faster than three, and gives the "
            "same numbers. Most code is written so; in nn.MultiheadAttention the matrix is in_proj_weight.",
        ),
    ),
    ("attention", "kv"): Explanation(
        "Keys and values in one",
        "neutral",
        plain=(
            "From its card every token of the source makes two things at once, side by side in one row: the spine "
            "of its book, its [key], and the book, its [value].",
        ),
        exact=(
            "Two thirds of the one matrix for [queries](query), [keys](key) and [values](value) make the keys and "
            "values of the source in one product. The queries come from the other sequence, so they have a product "
            "of their own, with the first third. nn.MultiheadAttention does the same.",
        ),
    ),
    ("attention", "part_q_proj"): Explanation(
        "Query projection",
        "query",
        plain=(
            "The first part of each row is the token's slip, its [query]: what it looks for.",
            If(("several_heads",), "It is {n_heads} slips side by side: one for each [head]."),
        ),
        exact=(
            "The first columns of the product that made [keys](key) and [values](value) too: for the token of each "
            "row its [query], what it looks for. Nothing is computed.",
            If(("several_heads",), "Each of the {n_heads} [heads](head) owns {d_k} neighbouring columns."),
        ),
    ),
    ("attention", "part_k_proj"): Explanation(
        "Key projection",
        "key",
        plain=(
            "The part of each row before the last is what stands on the spine of the token's book, its [key]: what "
            "it is found by.",
            If(("several_heads",), "It is {n_heads} spines side by side: one for each [head]."),
        ),
        exact=(
            "The columns before those of the [values](value), of the product that made both: for the token of each "
            "row its [key], what it is found by. Nothing is computed.",
            If(("several_heads",), "Each of the {n_heads} [heads](head) owns {d_k} neighbouring columns."),
        ),
    ),
    ("attention", "part_v_proj"): Explanation(
        "Value projection",
        "value",
        plain=(
            "The last part of each row is what stands in the token's book, its [value]: what a reader takes home.",
            If(("several_heads",), "It is {n_heads} books side by side: one for each [head]."),
        ),
        exact=(
            "The last columns of the product that made the [keys](key) too: for the token of each row its [value], "
            "what it hands over. Nothing is computed.",
            If(("several_heads",), "Each of the {n_heads} [heads](head) owns {d_v} neighbouring columns."),
        ),
    ),
    ("attention", "q"): Explanation(
        "Queries per head",
        "query",
        plain=(
            If(
                ("several_heads",),
                "The slips are handed to {n_heads} librarians, the [heads](head), each with a "
                "question of its own. Row t is what token t asks the one shown.",
            ),
            If(("one_head",), "The slips go to the only librarian, the [head]. Row t is what token t asks."),
        ),
        exact=(
            If(
                ("several_heads",),
                "The projection cut into {n_heads} [heads](head). Nothing is computed: the same "
                "numbers, with an axis for the head. Row t is what token t asks in this head.",
            ),
            If(
                ("one_head",),
                "There is one [head], so nothing is cut: the same numbers, with an axis for the head. "
                "Row t is what token t asks, its [query].",
            ),
        ),
    ),
    ("attention", "k"): Explanation(
        "Keys per head",
        "key",
        plain=(
            If(
                ("several_heads",),
                "Each librarian, a [head], has spines of its own. Row t is what stands on the "
                "spine of token t for the one shown.",
            ),
            If(("one_head",), "The spines as the only librarian, the [head], sees them. Row t is that of token t."),
        ),
        exact=(
            If(
                ("several_heads",),
                "The projection cut into {n_heads} [heads](head). Row t is what token t offers "
                "to be found by in this head.",
            ),
            If(
                ("one_head",),
                "There is one [head], so nothing is cut. Row t is what token t offers to be found by, its [key].",
            ),
        ),
    ),
    ("attention", "v"): Explanation(
        "Values per head",
        "value",
        plain=(
            If(
                ("several_heads",),
                "Each librarian, a [head], hands out books of its own. Row t is what stands in "
                "the book of token t for the one shown.",
            ),
            If(
                ("one_head",), "The books that the only librarian, the [head], hands out. Row t is that of token t."
            ),
        ),
        exact=(
            If(
                ("several_heads",),
                "The projection cut into {n_heads} [heads](head). Row t is what token t passes on in this head.",
            ),
            If(
                ("one_head",),
                "There is one [head], so nothing is cut. Row t is what token t passes on, its [value].",
            ),
        ),
    ),
    ("attention", "given_q"): Explanation(
        "Queries",
        "query",
        plain=(
            "[Attention] is a library. Every reader has a slip, its [query]: what it looks for. Here the slips are "
            "given, not made from anything.",
        ),
        exact=(
            "The [queries](query), given as they are: this attention has no projections. Row t is what token t "
            "looks for.",
        ),
    ),
    ("attention", "given_k"): Explanation(
        "Keys",
        "key",
        plain=("What stands on the spine of every book, its [key]: what it is found by. It is given too.",),
        exact=(
            "The [keys](key), given as they are: this attention has no projections. Row t is what token t is "
            "found by.",
        ),
    ),
    ("attention", "given_v"): Explanation(
        "Values",
        "value",
        plain=("What stands in every book, its [value]: what a reader takes home. It is given too.",),
        exact=(
            "The [values](value), given as they are: this attention has no projections. Row t is what token t "
            "passes on.",
        ),
    ),
    ("attention", "scores"): Explanation(
        "Scores",
        "weights",
        plain=(
            "Every slip (row) is held against every spine (column). The better what is asked for and what is "
            "offered agree, the larger the [score](scores).",
        ),
        exact=(
            "One [dot product] for every [query] (row) and every [key] (column): how well the two fit. Only "
            "differences within a row will matter.",
            If(("unmasked",), "The key with the largest score gets the largest weight."),
            If(("blocks_nothing",), "The key with the largest score gets the largest weight."),
            If(
                ("masked",),
                "Of the keys that are not blocked, that with the largest score gets the largest weight.",
            ),
        ),
    ),
    ("attention", "scaled_scores"): Explanation(
        "Scaled scores",
        "weights",
        plain=(
            "A long slip gives large [scores] merely because it is long, and large scores make the choice all or "
            "nothing.",
            If(("scaled",), "Dividing by {root_d_k} makes up for the length."),
            If(("unscaled",), "That would be made up for by scaling, but it is off: the scores stay as they are."),
        ),
        exact=(
            If(
                ("scaled",),
                "Dot products of random vectors grow with √d_k, and where scores are large the "
                "[softmax] has almost no gradient. Dividing by [√d_k](scaling) = {root_d_k} makes up for it, so "
                "that long vectors score like short ones.",
            ),
            If(
                ("unscaled",),
                "[Scaling](scaling) is off, so the scores stay as they are. Dot products of random "
                "vectors grow with √d_k, and where scores are large the [softmax] has almost no gradient.",
            ),
        ),
    ),
    ("attention", "mask"): Explanation(
        "Mask",
        "weights",
        plain=(
            "The [mask] says which books (columns) a reader (row) may open; hatched ones are locked.",
            *_EACH_MASK,
            If(("several_masks",), "A book is open only where all of them allow it."),
            If(("blocks_nothing",), "Here nothing is locked."),
        ),
        exact=(
            "Which [query] (row) may attend to which [key] (column): hatched cells are blocked by the [mask], here "
            "{masks}.",
            If(("several_masks",), "They combine with and."),
            If(("blocks_nothing",), "None of the cells is blocked."),
            "True (1) = may attend, as in F.scaled_dot_product_attention; attn_mask and key_padding_mask of "
            "nn.MultiheadAttention mean the opposite, True = blocked.",
        ),
    ),
    ("attention", "masked_scores"): Explanation(
        "Masked scores",
        "weights",
        plain=(
            If(
                ("masked",),
                "Where the [mask] locks a book, its score becomes minus infinity: however well its "
                "spine fits, it cannot win.",
            ),
            If(("unmasked",), "There is no [mask]: every book is open, and the scores stay as they were."),
            If(("blocks_nothing",), "The [mask] locks no book here, so the scores stay as they were."),
            If(
                ("scores_zeroed",),
                "Here is a mistake, made on purpose: the score of a locked book becomes 0, not "
                "minus infinity. That is a score like any other, so it can still win.",
            ),
            If(
                ("masked_late",),
                "Here is a mistake, made on purpose: locked books keep their scores, and are "
                "struck out only after the shares were given.",
            ),
        ),
        exact=(
            If(
                ("masked",),
                "Cells that the [mask] blocks become minus infinity, so that the [softmax] gives them "
                "exactly zero. The others stay as they are.",
            ),
            If(("unmasked",), "There is no [mask]: all scores stay as they are."),
            If(("blocks_nothing",), "The [mask] blocks no cell here: all scores stay as they are."),
            If(
                ("scores_zeroed",),
                "The mask bug at work: the scores are multiplied by the [mask], so a blocked "
                "score becomes 0, a score like any other, instead of minus infinity.",
            ),
            If(
                ("masked_late",),
                "The mask bug at work: the scores stay as they are, and the [mask] is multiplied "
                "onto the weights after the [softmax].",
            ),
        ),
    ),
    ("attention", "weights"): Explanation(
        "Attention weights",
        "weights",
        plain=(
            "Every reader has one whole of attention to give, and shares it out among the books: the better the "
            "fit, the larger the share, its [weight](attention weights).",
            If(("masked",), "A locked book gets exactly nothing."),
            If(("masked", "keyless"), "A reader to whom every book is locked gives nothing at all."),
            If(("scores_zeroed",), "By the mask bug, locked books get a share too."),
            If(
                ("masked_late",),
                "By the mask bug, locked books are struck out only now, so that what is left of a "
                "row no longer makes a whole.",
            ),
        ),
        exact=(
            "The [softmax] turns each row of scores into shares that sum to one: how much of its attention a "
            "[query] (row) gives to each [key] (column).",
            If(("masked", "keyless"), "A query with no key left gets a row of exact zeros."),
            If(("scores_zeroed",), "By the mask bug, blocked cells have a score of 0 and so a weight."),
            If(
                ("masked_late",),
                "By the mask bug the [mask] is multiplied onto these shares, so that rows with "
                "blocked cells sum to less than one.",
            ),
        ),
        left_out=("mask",),
    ),
    ("attention", "dropped_weights"): Explanation(
        "Weights after dropout",
        "weights",
        plain=(
            "As in training, [dropout] strikes out each share with a chance of {p}, and enlarges the others to "
            "make up for it on average. So that no reader learns to rely on one book alone.",
        ),
        exact=(
            "[Dropout](dropout) sets each weight to zero with probability {p} and divides the others by 1 - {p}, "
            "as in training. A row then sums to one only on average. Set it to 0 to see the model as it is used.",
        ),
    ),
    ("attention", "context"): Explanation(
        "Context",
        "value",
        plain=(
            "Every reader takes from each book as much as its share says, and carries the mixture home: its "
            "[context]. Only here does anything pass from one token to another.",
        ),
        exact=(
            If(
                ("no_dropout",),
                "For each [query], the mixture of all [values](value) in the proportions of its weights.",
            ),
            If(
                ("dropout",),
                "For each [query], the mixture of all [values](value) in the proportions of its "
                "weights after [dropout].",
            ),
            "Here information moves from one token to another, and nowhere but in an [attention] does it do so.",
        ),
    ),
    ("attention", "concat"): Explanation(
        "Heads side by side",
        "value",
        plain=(
            If(
                ("several_heads",),
                "What a reader got from its {n_heads} librarians, the [heads](head), is laid side by side.",
            ),
            If(("one_head",), "There is one librarian, the [head], so there is nothing to lay beside it."),
        ),
        exact=(
            If(
                ("several_heads",),
                "The [contexts](context) of all {n_heads} [heads](head), laid next to each other "
                "in one row per token. Nothing is computed.",
            ),
            If(("one_head",), "The [context] of the one [head], in one row per token. Nothing is computed."),
        ),
    ),
    ("attention", "output"): Explanation(
        "Attention output",
        "residual",
        plain=(
            If(
                ("projected",),
                "What was carried home is put into the language of the cards: {d_out} numbers for each token.",
            ),
            If(("projected", "in_layer"), "So it can be added to them."),
            If(("unprojected",), "Nothing more is done to it: what was carried home goes out as it is."),
        ),
        exact=(
            If(
                ("projected", "several_heads"),
                "The [output projection] mixes what the [heads](head) found into {d_out} numbers per token.",
            ),
            If(
                ("projected", "one_head"),
                "The [output projection] turns what the [head] found into {d_out} numbers per token.",
            ),
            If(("projected", "in_layer"), "That is the width of the [residual stream]."),
            If(
                ("unprojected",),
                "This attention has no [output projection]: it puts out what stands side by side as it is.",
            ),
        ),
    ),
    ("feed_forward", "input"): Explanation(
        "Input of the feed-forward network",
        "residual",
        plain=("The cards that enter. From here on every token works by itself.",),
        exact=(
            "The vectors that enter the [feed-forward network], one per token. Each will be treated by itself.",
        ),
    ),
    ("feed_forward", "hidden"): Explanation(
        "Hidden layer",
        "feed_forward",
        plain=(
            "At its own desk, every token thinks by itself: its card is held against {d_ff} patterns, and each "
            "gets a number for how well it fits.",
        ),
        exact=(
            "Each token by itself is spread over {d_ff} [hidden units](hidden unit). The same matrix serves every "
            "position, and no token sees another here.",
        ),
    ),
    ("feed_forward", "activation"): Explanation(
        "Activation",
        "feed_forward",
        plain=(
            If(("relu",), "Patterns that fit stay; those that do not, below zero, become zero."),
            If(("gelu",), "Patterns that fit stay; those that do not, below zero, fade to almost zero."),
        ),
        exact=(
            If(("relu",), "[ReLU](relu) cuts negative units to zero."),
            If(("gelu",), "[GELU](gelu) brings negative units close to zero, with a smooth bend."),
            "Without an [activation] two linear layers would be no more than one.",
        ),
    ),
    ("feed_forward", "dropped_activation"): Explanation(
        "Activation after dropout",
        "feed_forward",
        plain=(
            "As in training, [dropout] strikes out each pattern with a chance of {p} and enlarges the others to "
            "make up for it on average.",
        ),
        exact=(
            "[Dropout](dropout) sets each [hidden unit] to zero with probability {p} and divides the others by "
            "1 - {p}, as in training. Set it to 0 to see the model as it is used.",
        ),
    ),
    ("feed_forward", "output"): Explanation(
        "Feed-forward output",
        "feed_forward",
        plain=(
            "From the patterns that fit, every token writes itself a note, {d_model} numbers long like its card.",
        ),
        exact=(
            "A second [linear layer] mixes the {d_ff} [hidden units](hidden unit) back into {d_model} numbers per "
            "token.",
        ),
    ),
    ("layer", "dropped_output"): Explanation(
        "Output after dropout",
        "residual",
        plain=(
            If(("after_self_attention",), "Of what a token brought home from the library,"),
            If(("after_cross_attention",), "Of what a token found in the books of the source,"),
            If(("after_feed_forward",), "Of the note that a token wrote itself,"),
            "[dropout] strikes out each number with a chance of {p}, and enlarges the others to make up for it on "
            "average.",
        ),
        exact=(
            "[Dropout](dropout) sets each number of the sub-layer's output to zero with probability {p} and "
            "divides the others by 1 - {p}, before it is added to the [residual stream].",
        ),
    ),
    ("layer", "residual"): Explanation(
        "Residual addition",
        "residual",
        plain=(
            If(("after_self_attention",), "What a token brought home from the library is added to its card."),
            If(("after_cross_attention",), "What a token found in the books of the source is added to its card."),
            If(("after_feed_forward",), "The note that a token wrote itself is added to its card."),
            If(("dropout",), "[Dropout](dropout) has struck out some of it by chance."),
            "What stood there before stays in the sum: this is a [residual](residual stream) addition.",
        ),
        exact=(
            If(("no_dropout",), "What the sub-layer found is added to the [residual stream], x."),
            If(
                ("dropout",),
                "What the sub-layer found is added to the [residual stream], x, after [dropout] with "
                "probability {p}.",
            ),
            "So information and gradients also have a way around every sub-layer.",
        ),
    ),
    ("layer", "norm"): Explanation(
        "Layer norm",
        "residual",
        plain=(
            If(
                ("post_norm",),
                "[Layer norm](layer norm) writes every card anew on one scale, so that none speaks "
                "louder than the others.",
            ),
            If(
                ("pre_norm",),
                "[Layer norm](layer norm) makes a copy of every card on one scale, for what comes next "
                "to read. The card itself stays as it is.",
            ),
        ),
        exact=(
            "[Layer norm](layer norm) shifts each token's vector to mean zero and scales it to variance one, then "
            "multiplies it by γ and adds β, which training learns.",
            If(("pre_norm",), "What comes next reads this; the [residual stream] itself is not normalised."),
            If(("post_norm",), "What comes next reads vectors of like size, whatever was added before."),
        ),
    ),
    ("model", "norm"): Explanation(
        "Last layer norm",
        "residual",
        plain=(
            "Until here the cards themselves were never brought to one scale, only copies of them. This last "
            "[layer norm] does it.",
        ),
        exact=(
            "With [pre-norm] the sums of the [residual stream] are never normalised themselves, so one more "
            "[layer norm] stands after the last layer.",
        ),
    ),
    ("model", "final_norm"): Explanation(
        "Last layer norm",
        "residual",
        plain=("The last layer has just brought the cards to one scale, and one more [layer norm] does it again.",),
        exact=(
            "The last layer has just normalised its sum, and one more [layer norm] follows, as in nn.Transformer. "
            "Until training gives either of the two other γ and β, it changes nothing but what ε and rounding do.",
        ),
    ),
    ("model", "logits"): Explanation(
        "Logits",
        "neutral",
        plain=(
            "Every finished card is held against all {vocab_size} tokens of the [vocabulary]: the better one fits, "
            "the larger its number, its [logit](logits).",
        ),
        exact=(
            "The last vectors times one column per token of the [vocabulary]: a score, the [logit](logits), for "
            "each of the {vocab_size} tokens at every position.",
            If(("output_bias",), "Each token has a bias of its own, which is added."),
        ),
    ),
    ("model", "probabilities"): Explanation(
        "Probabilities",
        "neutral",
        plain=(
            "Each row is shared out as one whole among the tokens of the [vocabulary]: how likely the model holds "
            "each of them.",
            If(("untrained",), _UNTRAINED),
            If(
                ("trained", "answers_in_place"),
                "The model was trained on “{task}” for {steps} steps: each row is its answer in that place.",
            ),
            If(
                ("trained", "expects_next"),
                "The model was trained on “{task}” for {steps} steps: each row is the token that it expects next.",
            ),
        ),
        exact=(
            "A [softmax] over the [vocabulary]. Each row sums to one.",
            If(("untrained",), _UNTRAINED),
            If(
                ("trained", "answers_in_place"),
                "The model was trained on “{task}” for {steps} steps: each row is its answer in that place.",
            ),
            If(
                ("trained", "expects_next"),
                "The model was trained on “{task}” for {steps} steps: each row is the token that it expects next.",
            ),
        ),
    ),
    ("model", "positional_encoding"): Explanation(
        "Sinusoidal positions",
        "residual",
        plain=(
            "Every place gets a stamp of its own, its [position](positional encoding). It is made of waves, quick "
            "ones on the left and slow ones on the right, like the hands of a clock.",
        ),
        exact=(
            "Row t is the vector of position t: [sinusoids](positional encoding), sines in the even columns and "
            "cosines in the odd ones, each pair slower than the one before.",
        ),
    ),
}
"""What is told about each kind of stage, by the part of the model it belongs to and its name without a number."""
