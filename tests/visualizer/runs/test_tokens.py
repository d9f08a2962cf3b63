import re
import unicodedata
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from visualizer.runs.tokens import PADDING, START, Vocabulary, encode, read_then_predicted, tokenize
from visualizer.safe_text import MAX_LABEL, graphemes, markdown_safe, plotly_safe, visible, visible_whole
from visualizer.settings.lines import lines_of
from visualizer.settings.settings import Settings

modest = settings(derandomize=True, max_examples=80, deadline=None)

FAMILY = "👨\u200d👩\u200d👧\u200d👦"
SCOTLAND = "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"
COUPLE = "👩🏿\u200d❤\ufe0f\u200d💋\u200d👩🏻"
HEART, KEYCAP, FLAG = "❤\ufe0f", "1\ufe0f\u20e3", "🇩🇪"
EMOJI = (FAMILY, SCOTLAND, COUPLE, HEART, KEYCAP, FLAG, "👍🏽", "🫨")

tricky = st.sampled_from(
    [*EMOJI, "\u200d", "\u200b", "\u202e", "\u0301", "\ufe0f", "\r\n", "\ud800", "<pad>", " ", "한"]
)
texts = st.lists(st.one_of(tricky, st.text(max_size=4)), max_size=8).map("".join)
kinds = st.sampled_from(["words", "characters", "bytes"])


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The cat sat.", ["The", "cat", "sat", "."]),
        ("Don't pay 3.14, or 16,667!", ["Don't", "pay", "3.14", ",", "or", "16,667", "!"]),
        ("'quoted' x.y", ["'", "quoted", "'", "x", ".", "y"]),
        ("l’été cafe\u0301", ["l’été", "cafe\u0301"]),
        ("हिन्दी العربية Straße snake_case", ["हिन्दी", "العربية", "Straße", "snake_case"]),
        ("中文 字", ["中", "文", "字"]),
        ("<pad> $x$ **", ["<", "pad", ">", "$", "x", "$", "*", "*"]),
        (f"a{FAMILY}b {KEYCAP}{FLAG}", ["a", FAMILY, "b", KEYCAP, FLAG]),
        ("a\u200bb", ["a", "\u200b", "b"]),
        (" \t\n\u00a0\u3000", []),
        ("", []),
    ],
)
def test_words(text, tokens):
    assert tokenize(text, "words") == tokens


@pytest.mark.parametrize("emoji", EMOJI)
def test_an_emoji_is_one_character_and_one_word(emoji):
    assert tokenize(f"x{emoji}y", "characters") == ["x", emoji, "y"]
    assert tokenize(f"x {emoji} y", "words") == ["x", emoji, "y"]


@pytest.mark.parametrize(
    ("text", "characters"),
    [
        ("e\u0301a", ["e\u0301", "a"]),
        ("a\r\nb\n", ["a", "\r\n", "b", "\n"]),
        ("🇩🇪🇫🇷", ["🇩🇪", "🇫🇷"]),
        ("\u1112\u1161\u11ab\u1100", ["\u1112\u1161\u11ab", "\u1100"]),
        ("\n\u0301", ["\n", "\u0301"]),
        ("क\u094d\u200dष", ["क\u094d\u200d", "ष"]),
    ],
)
def test_characters_are_those_a_person_sees(text, characters):
    assert graphemes(text) == characters


def test_bytes():
    assert tokenize("é\n0xC3", "bytes") == ["0xC3", "0xA9", "\n", "0", "x", "C", "3"]


def test_ids_follow_the_first_appearance():
    encoded = encode(Settings(text="the cat the dog"))
    assert encoded.sources[0].ids == (2, 3, 2, 4)
    assert encoded.vocabulary.labels == ("<pad>", "<s>", "the", "cat", "dog")
    assert len(encoded.vocabulary) == 5
    assert encoded.targets is None


def test_typing_on_leaves_earlier_ids_unchanged():
    before, after = encode(Settings(text="a b a")), encode(Settings(text="a b a c"))
    assert after.sources[0].ids[:3] == before.sources[0].ids


def test_ids_of_bytes_are_fixed():
    encoded = encode(Settings(text="Az", tokens="bytes"))
    assert encoded.sources[0].ids == (2 + ord("A"), 2 + ord("z"))
    assert len(encoded.vocabulary) == 258


def test_the_target_is_shifted_right_and_shares_the_vocabulary():
    encoded = encode(Settings(architecture="encoder-decoder", text="a b", target="b c", pad=2))
    assert encoded.sources[0].tokens == ("a", "b", PADDING, PADDING)
    assert encoded.targets[0].tokens == (START, "b", "c", PADDING, PADDING)
    assert encoded.targets[0].ids == (1, 3, 4, 0, 0)
    assert encoded.targets[0].is_padding == (False, False, False, True, True)


def test_source_and_target_can_have_a_vocabulary_each():
    text = Settings(architecture="encoder-decoder", text="the cat", target="the Katze the", shared_vocabulary=False)
    encoded = encode(text)
    assert encoded.vocabulary.tokens == ("the", "cat")
    assert encoded.output_vocabulary.tokens == ("the", "Katze")
    assert encoded.sources[0].ids == (2, 3)
    assert encoded.targets[0].ids == (1, 2, 3, 2)
    assert encode(replace(text, architecture="decoder")).output_vocabulary.tokens == ("the", "cat")


def test_an_empty_target_is_its_start():
    assert encode(Settings(architecture="encoder-decoder", target=" ")).targets[0].tokens == (START,)


@pytest.mark.parametrize("text", ["", "   ", "\n\t"])
def test_a_text_without_words_has_no_tokens_even_with_padding(text):
    assert len(encode(Settings(text=text, pad=3)).sources[0]) == 0


@pytest.mark.parametrize("kind", ["words", "characters", "bytes"])
def test_a_typed_special_is_not_the_special(kind):
    source = encode(Settings(text="<pad> <s>", tokens=kind)).sources[0]
    assert min(source.ids) >= 2
    assert not any(source.is_padding)
    assert not {PADDING, START} & set(source.tokens)


def test_an_unknown_token_is_refused_by_name():
    with pytest.raises(ValueError, match="'b' is not in the vocabulary"):
        Vocabulary(("a",)).ids_of(["b"])


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        ("cat", "cat"),
        ("", "∅"),
        (" ", "·"),
        ("  a b ", "··a b·"),
        ("\n", "↵"),
        ("\r\n", "↵"),
        ("\t", "⇥"),
        ("\0", "⟨0000⟩"),
        ("a\u200bb", "a⟨200B⟩b"),
        ("a\u200db", "a⟨200D⟩b"),
        ("\u202eabc", "⟨202E⟩abc"),
        ("\u2067", "⟨2067⟩"),
        ("\u00ad", "⟨00AD⟩"),
        ("\u00a0", "⟨00A0⟩"),
        ("\u3164", "⟨3164⟩"),
        ("\ud800", "⟨D800⟩"),
        ("\ue000", "⟨E000⟩"),
        ("a\ufe0f", "a⟨FE0F⟩"),
        ("\u0301", "◌\u0301"),
        ("e\u0301", "e\u0301"),
        ("🏴\U000e0061", "🏴⟨E0061⟩"),
        *[(emoji, emoji) for emoji in EMOJI],
    ],
)
def test_visible(token, shown):
    assert visible(token) == shown


def test_a_long_token_is_shortened_where_it_is_drawn_only():
    assert visible("x" * 24) == "x" * 24
    assert visible("x" * 25) == "x" * 23 + "…"
    assert visible("x" * 100_000) == "x" * 23 + "…"
    assert visible_whole("x" * 1000) == "x" * 1000
    assert visible("e" + "\u0301" * 1000) == "e" + "\u0301" * 15 + "…"
    assert visible(FAMILY * 24) == FAMILY * 24
    assert visible("\u202e" * 10) == "⟨202E⟩⟨202E⟩⟨202E⟩⟨202E…"


def test_markdown_draws_what_was_typed():
    assert markdown_safe("**a**") == r"\*\*a\*\*"
    assert markdown_safe(":red[x] $y$ <b>") == r"\:red\[x\] \$y\$ \<b\>"
    assert markdown_safe("The cat, quietly") == r"The cat\, quietly"
    assert markdown_safe("3.14 > 3") == r"3\.14 \> 3"
    assert markdown_safe("1. x\n# y") == r"1\. x↵\# y"


@pytest.mark.parametrize("text", ["a->b", "<-", "--", ">=", ":streamlit:", "http://a.bc", "www.a.bc", "a@b.cd"])
def test_what_streamlit_would_rewrite_is_kept_apart(text):
    safe = markdown_safe(text)
    assert "\u2060" in safe
    assert re.sub(r"[\\\u2060]", "", safe) == text


def test_plotly_draws_what_was_typed():
    assert plotly_safe("<b>&amp;$x$%{y}") == "&lt;b&gt;&amp;amp;&#36;x&#36;%&#123;y}"


@modest
@given(texts)
def test_nothing_stays_hidden(text):
    for shown in (visible(text), visible_whole(text)):
        assert shown
        without_emoji = re.sub(
            r"(?<=[^\W\d]|[^\w\s])(\ufe0f|\u200d(?=[^\w\s])|[\U000e0061-\U000e007a]+\U000e007f)", "", shown
        )
        hidden = [c for c in without_emoji if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")]
        assert not hidden


@modest
@given(texts)
def test_visible_text_stays_as_it_is(text):
    assert visible_whole(visible_whole(text)) == visible_whole(text)


@modest
@given(texts)
def test_a_drawn_token_is_short(text):
    assert len(graphemes(visible(text * 20))) <= MAX_LABEL


@modest
@given(texts)
def test_text_is_the_sum_of_its_characters(text):
    assert "".join(tokenize(text, "characters")) == text


@modest
@given(texts)
def test_text_is_the_sum_of_its_bytes(text):
    encoded = encode(Settings(text=text, tokens="bytes"))
    for line, sequence in zip(lines_of(text), encoded.sources, strict=True):
        ids = [index - 2 for index, pads in zip(sequence.ids, sequence.is_padding, strict=True) if not pads]
        assert bytes(ids).decode("utf-8", "surrogatepass") == line


@modest
@given(texts)
def test_words_hold_everything_but_white_space(text):
    assert "".join("".join(tokenize(text, "words")).split()) == "".join(text.split())


@modest
@given(texts, st.booleans(), kinds, st.integers(0, 3))
def test_ids_bring_back_the_tokens(text, has_target, kind, pad):
    chosen = Settings(
        architecture="encoder-decoder", text=text, target=text if has_target else "", tokens=kind, pad=pad
    )
    encoded = encode(chosen)
    for sequence in (*encoded.sources, *encoded.targets):
        assert encoded.vocabulary.tokens_of(sequence.ids) == sequence.tokens
        assert len(sequence.ids) == len(sequence.is_padding) == len(sequence.labels) == len(sequence)
        assert all(0 <= index < len(encoded.vocabulary) for index in sequence.ids)
        assert sequence.is_padding.count(True) == sequence.ids.count(0)
    for batch in (encoded.sources, encoded.targets):
        assert len({len(sequence) for sequence in batch}) == 1
        assert min(sequence.is_padding.count(True) for sequence in batch) == (pad if batch[0].tokens else 0)
    assert encoded == encode(replace(chosen))


@modest
@given(texts)
def test_every_place_takes_every_text(text):
    assert "\n" not in markdown_safe(text)
    assert "<" not in plotly_safe(text)


def test_a_row_of_a_decoder_is_labelled_by_what_is_read_and_then_predicted():
    assert read_then_predicted(["<sos>", "t", "<pad>"], ["t", "h", ""]) == ("<sos> → t", "t → h", "<pad>")
