"""The settings that each attention sees, and what becomes of a change there."""

from dataclasses import replace

import pytest

from visualizer.settings.attentions import attention_named, attentions_of, changed_for, seen_by, unpadded
from visualizer.settings.fields import changed
from visualizer.settings.link import read_query, write_query
from visualizer.settings.settings import Selection, Settings

PAIR = Settings(
    architecture="encoder-decoder", mask=("causal", "padding", "custom"), custom="q != 3", custom_cross="k <= q"
)


def named(name):
    return attention_named(name, "encoder-decoder")


@pytest.mark.parametrize("architecture", ["encoder", "decoder", "attention"])
def test_a_model_with_one_attention_sees_the_settings_as_they_are(architecture):
    settings = replace(PAIR, architecture=architecture)
    (only,) = attentions_of(architecture)
    assert seen_by(attention_named("cross", architecture), settings) is settings
    assert only.n_layers(settings) == settings.depth


def test_each_attention_sees_its_own_painting_and_the_padding_mask():
    assert seen_by(named("decoder"), PAIR) is PAIR
    assert (seen_by(named("cross"), PAIR).mask, seen_by(named("cross"), PAIR).custom) == (
        ("padding", "custom"),
        "k <= q",
    )
    assert seen_by(named("encoder"), PAIR).mask == ("padding",)
    off = replace(PAIR, cross_padding=False)
    assert seen_by(named("cross"), off).mask == ("custom",)
    assert [attention.name for attention in unpadded(off)] == ["cross"]
    assert not unpadded(replace(off, mask=("causal",)))
    assert seen_by(named("cross"), replace(PAIR, mask=("causal",))).mask == ()


def test_a_painting_of_another_attention_paints_nothing_in_the_decoder():
    settings = replace(PAIR, custom="")
    assert seen_by(named("decoder"), settings).mask == ("causal", "padding")
    edited = changed_for(named("decoder"), settings, replace(seen_by(named("decoder"), settings), mask=("causal",)))
    assert edited.mask == ("causal", "custom")
    assert edited.custom_cross == "k <= q"


@pytest.mark.parametrize("name", ["encoder", "decoder", "cross"])
def test_what_was_changed_for_an_attention_is_what_it_then_sees_and_no_other(name):
    edited = changed_for(named(name), PAIR, replace(seen_by(named(name), PAIR), mask=("custom",), custom="q == k"))
    seen = seen_by(named(name), edited)
    assert (seen.mask, seen.custom) == (("custom",), "q == k")
    for other in {"encoder", "decoder", "cross"} - {name}:
        if name == "decoder":  # the list of masks is the decoder's, and decides whether there is a padding mask
            assert seen_by(named(other), edited).custom == seen_by(named(other), PAIR).custom
        else:
            assert seen_by(named(other), edited) == replace(
                edited, mask=seen_by(named(other), PAIR).mask, custom=seen_by(named(other), PAIR).custom
            )


def test_the_last_painting_that_goes_takes_painted_from_the_list():
    settings = replace(PAIR, custom="")
    bare = changed_for(
        named("cross"), settings, replace(seen_by(named("cross"), settings), mask=("padding",), custom="")
    )
    assert (bare.mask, bare.custom_cross, bare.cross_padding) == (("causal", "padding"), "", True)


def test_all_of_it_is_in_the_link_and_an_old_link_says_what_it_said():
    selection = changed(Selection(view="lab"), attention="cross", intent="causal", intent_cross="window:3+padding")
    settings = replace(PAIR, custom_encoder="~QAIAA4A", encoder_padding=False)
    query = write_query(settings, selection)
    read, looked_at, notices = read_query({name: [text] for name, text in query.items()})
    assert (read, notices) == (settings, ())
    assert (looked_at.lab.attention, looked_at.lab.intent_cross) == ("cross", "window:3+padding")
    old = {"architecture": ["encoder-decoder"], "mask": ["causal,custom"], "custom": ["k <= q"]}
    read, looked_at, _ = read_query(old)
    assert (read.custom, read.custom_encoder, read.custom_cross) == ("k <= q", "", "")
    assert (read.encoder_padding, read.cross_padding, looked_at.lab.attention) == (True, True, "decoder")
