"""A checkpoint's pass as a run: its numbers against transformers, under masks and edits, and its names."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from headlight.pretrained.opening import cost_of, open_checkpoint
from headlight.pretrained.tokenized import Words, tokenized
from model.decoding import GREEDY
from model.masks import causal
from tests.headlight.pretrained.tiny_checkpoints import FAMILIES, OTHERS, saved
from visualizer.masks import OWN
from visualizer.pictures.step import Place, equation
from visualizer.runs.checkpoints import (
    batches_of,
    checkpoint_of,
    input_of,
    n_bytes_of,
    n_bytes_of_all,
    opened,
    own_mask_names,
)
from visualizer.runs.continuation import Difference, OneByOne, write
from visualizer.runs.paths import attention_modules
from visualizer.runs.prepare import prepare
from visualizer.runs.refusals import RefusedError
from visualizer.runs.saved import as_trace
from visualizer.runs.writer import writer_of
from visualizer.settings.fields import PRETRAINED
from visualizer.settings.fitting import fitted, usual_mask
from visualizer.settings.interventions import Intervention, write_interventions
from visualizer.settings.painted_mask import EVERYWHERE, Scope, write_planes
from visualizer.settings.settings import Settings
from visualizer.stages.attention import agreement
from visualizer.stages.head_measures import measure_heads
from visualizer.views.generate.pictures import steps_picture
from visualizer.work.cache import cached_run
from visualizer.work.cached_operations import cached_operations

HEAD, HEAD_DIM = 1, 4
PROJECTIONS = {
    "gpt2": "transformer.h.0.attn.c_proj.weight",
    "llama": "model.layers.0.self_attn.o_proj.weight",
    "qwen3": "model.layers.0.self_attn.o_proj.weight",
    "bert": "encoder.layer.0.attention.output.dense.weight",
    "bart": "model.encoder.layers.0.self_attn.out_proj.weight",
    "t5": "encoder.block.0.layer.0.SelfAttention.o.weight",
    "bloom": "transformer.h.0.self_attention.dense.weight",
    "xglm": "model.layers.0.self_attn.out_proj.weight",
    "cpmant": "cpmant.encoder.layers.0.self_att.self_attention.attention_out.weight",
    "xlnet": "transformer.layer.0.rel_attn.o",
}
"""The output projection of the first attention of each family."""


@pytest.fixture
def settings_of(tmp_path, monkeypatch):
    """Open a small checkpoint of a family, and give the settings of its pass over a text."""
    monkeypatch.setenv("HEADLIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("headlight.pretrained.checkpoint_places.sites", lambda: ())

    def settings(family, text="the cat", **changes):
        folder = str(saved(family, tmp_path / family))
        checkpoint = open_checkpoint(cost_of(folder), lambda *_: None)
        target = "un the" if checkpoint.part == "encoder-decoder" else ""
        plain = Settings(weights=PRETRAINED, text=text, target=target, pretrained_model=folder)
        plain = fitted(replace(plain, architecture=checkpoint.part, **changes))
        return plain if "mask" in changes else replace(plain, mask=usual_mask(plain))

    return settings


def reported(settings, **more):
    """Return the output that transformers itself computes, with its weights."""
    checkpoint = checkpoint_of(settings)
    given = tokenized(checkpoint, Words(settings.text, settings.target, batch=settings.pretrained_batch), 64)
    checkpoint.model.set_attn_implementation("eager")
    with torch.no_grad():
        return checkpoint.model(**{**given.inputs, **more}, output_attentions=True)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_weights_are_those_that_transformers_reports(family, settings_of):
    settings = settings_of(family)
    run = cached_run(settings)
    output = reported(settings)
    if settings.architecture == "encoder-decoder":
        kinds = {
            "encoder.layers.{}.self_attention": output.encoder_attentions,
            "decoder.layers.{}.self_attention": output.decoder_attentions,
            "decoder.layers.{}.cross_attention": output.cross_attentions,
        }
    else:
        kinds = {f"{settings.architecture}.layers.{{}}.self_attention": output.attentions}
    assert len(attention_modules(run.trace)) == sum(map(len, kinds.values()))
    for kind, weights in kinds.items():
        for layer, expected in enumerate(weights):
            torch.testing.assert_close(
                run.trace[f"{kind.format(layer)}.weights"].value, expected, atol=1e-5, rtol=0
            )
    if "logits" in run.trace:
        torch.testing.assert_close(run.trace["logits"].value, output.logits, atol=1e-4, rtol=0)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_stages_of_an_attention_follow_from_one_another(family, settings_of):
    run = cached_run(settings_of(family))
    for module in attention_modules(run.trace):
        stages = {name: run.trace[f"{module}.{name}"] for name in ("q", "k", "v", "weights", "context")}
        assert all(tuple(size for _, size in stage.dims) == stage.value.shape for stage in stages.values())
        masked, weights = run.trace[f"{module}.masked_scores"].value, stages["weights"].value
        torch.testing.assert_close(masked.softmax(-1), weights, atol=1e-5, rtol=0)
        torch.testing.assert_close(weights @ stages["v"].value, stages["context"].value, atol=1e-5, rtol=0)
        queries, keys = run.axes(f"{module}.weights")
        assert (queries.sequence, keys.sequence) == (
            ("target", "source") if "cross" in module else ("target",) * 2 if "target" in run.tokens
            and module.startswith("decoder.") else ("source",) * 2
        )  # fmt: skip


@pytest.mark.parametrize(("family", "names"), [("llama", ("causal",)), ("bert", ()), ("t5", ("causal",))])
def test_its_own_masks_have_names(family, names, settings_of):
    settings = settings_of(family)
    run = cached_run(settings)
    of_list = next(path for path in reversed(attention_modules(run.trace)) if "cross" not in path)
    assert run.mask_of(of_list).names == names
    assert OWN not in {name for mask in run.masks.values() for name in mask.names}


@pytest.mark.parametrize("family", ["gpt2", "llama", "qwen3", "bert"])
@pytest.mark.parametrize("mask", [(), ("causal", "sliding_window"), ("prefix",)])
def test_another_mask_gives_the_pass_of_transformers_under_it(family, mask, settings_of):
    settings = settings_of(family, mask=mask, window=2, prefix=1)
    run = cached_run(settings)
    module = attention_modules(run.trace)[0]
    n_tokens = len(run.tokens["source"])
    query, key = torch.arange(n_tokens)[:, None], torch.arange(n_tokens)[None]
    cells = {
        (): torch.ones(n_tokens, n_tokens, dtype=torch.bool),
        ("causal", "sliding_window"): (key <= query) & (query - key < 2),
        ("prefix",): (key <= query) | (key < 1),
    }[mask]
    added = torch.zeros(n_tokens, n_tokens).masked_fill(~cells, torch.finfo(torch.float32).min)[None, None]
    output = reported(settings, attention_mask=added)
    for layer, expected in enumerate(output.attentions):
        path = f"{settings.architecture}.layers.{layer}.self_attention.weights"
        torch.testing.assert_close(run.trace[path].value, expected, atol=1e-5, rtol=0)
    assert run.mask_of(module).names == mask


@pytest.mark.parametrize(("family", "lies_on"), [("mistral", True), ("gpt_oss", False)])
def test_a_painting_lies_on_the_masks_that_all_layers_have_by_themselves_else_takes_their_place(
    family, lies_on, settings_of
):
    settings = settings_of(family, text="the cat sat", mask=("causal", "custom"), custom="k != 1")
    run = cached_run(settings)
    n_tokens = len(run.tokens["source"])
    query, key = torch.arange(n_tokens)[:, None], torch.arange(n_tokens)[None]
    cells = (key <= query) & (key != 1) & ((query - key < 4) | (not lies_on))
    added = torch.zeros(n_tokens, n_tokens).masked_fill(~cells, torch.finfo(torch.float32).min)[None, None]
    for module, expected in zip(
        attention_modules(run.trace), reported(settings, attention_mask=added).attentions, strict=True
    ):
        weights = run.trace[f"{module}.weights"].value
        torch.testing.assert_close(weights, expected[..., :n_tokens], atol=1e-5, rtol=0)
        assert run.mask_of(module).names == ("causal", *["sliding_window"] * lies_on, "custom")
    assert own_mask_names(settings) == ("causal", "sliding_window")
    assert writer_of(run).masks.names == ("causal", *["sliding_window"] * lies_on)
    assert bool(writer_of(run).masks.allowed[0, 0, 20, 16]) is not lies_on


def test_a_window_that_is_chosen_is_as_wide_as_chosen_over_more_tokens_than_the_text_has(settings_of):
    run = cached_run(settings_of("llama", text="the", mask=("causal", "sliding_window"), window=3))
    allowed = writer_of(run).masks.allowed[0, 0]
    assert allowed[20].nonzero().flatten().tolist() == [18, 19, 20]


def test_three_masks_of_an_encoder_decoder_at_once(settings_of):
    settings = settings_of(
        "t5", mask=("causal", "custom"), custom="k <= q and k != 1", custom_encoder="k <= q", custom_cross="k > 0"
    )
    run = cached_run(settings)
    allowed = {
        "encoder.layers.1.self_attention": lambda q, k: k <= q,
        "decoder.layers.1.self_attention": lambda q, k: (k <= q) & (k != 1),
        "decoder.layers.1.cross_attention": lambda q, k: (k > 0) & (q >= 0),
    }
    for module, condition in allowed.items():
        weights = run.trace[f"{module}.weights"].value[0, 0]
        query, key = (torch.arange(size) for size in weights.shape)
        assert torch.equal(weights > 0, condition(query[:, None], key[None]))


def test_a_mask_for_each_head_is_one_for_each_head_and_one_for_a_layer_is_refused(settings_of):
    by_head = write_planes({Scope(head=1): "k == q", EVERYWHERE: "k <= q"})
    run = cached_run(settings_of("llama", mask=("custom",), custom=by_head))
    weights = run.trace["decoder.layers.1.self_attention.weights"].value[0]
    n_tokens = weights.shape[-1]
    assert torch.equal(weights[1], torch.eye(n_tokens))
    assert torch.equal(weights[0] > 0, causal(n_tokens, n_tokens))
    with pytest.raises(ValueError, match="one mask for all of its layers"):
        cached_run(settings_of("llama", mask=("custom",), custom=write_planes({Scope(layer=1): "k == q"})))


@pytest.mark.parametrize("family", PROJECTIONS)
def test_a_head_left_out_is_the_model_without_its_columns_of_the_output_projection(family, settings_of):
    settings = settings_of(family)
    path = f"{'encoder' if family in ('bert', 'bart', 't5') else 'decoder'}.layers.0.self_attention.context"
    left_out = write_interventions([Intervention(path, "zero", head=HEAD)])
    run = cached_run(replace(settings, edits=left_out))
    assert not run.complaints
    assert not run.trace[path].value[:, HEAD].any()
    assert run.trace[path].value[:, HEAD + 1].any()
    weight = checkpoint_of(settings).model.get_parameter(PROJECTIONS[family])
    columns = slice(HEAD * HEAD_DIM, (HEAD + 1) * HEAD_DIM)
    with torch.no_grad():
        (weight[columns] if family == "gpt2" else weight.flatten(1)[:, columns]).zero_()  # Conv1D: inputs first
    output = reported(settings)
    last = attention_modules(run.trace)[1]
    expected = (output.encoder_attentions if "encoder_attentions" in output else output.attentions)[1]
    weights = run.trace[f"{last}.weights"].value[..., -expected.shape[-2] :, -expected.shape[-1] :]  # no prompt
    torch.testing.assert_close(weights, expected, atol=1e-5, rtol=1e-5)


def test_what_another_text_gives_at_every_context_of_a_layer_is_taken_over(settings_of):
    settings = settings_of("gpt2", text="the cat")
    other = cached_run(replace(settings, text="the sat"))
    path = "decoder.layers.1.self_attention.context"
    edits = write_interventions([Intervention(path, "other")])
    run = cached_run(replace(settings, edits=edits, other_text="the sat"))
    torch.testing.assert_close(run.trace[path].value, other.trace[path].value)
    complaints = cached_run(replace(settings, edits=edits)).complaints
    assert complaints == ("The edits are left out: there is no other text.",)


def test_a_head_that_is_left_out_is_zero_in_every_operation_too(settings_of):
    path = "decoder.layers.0.self_attention.context"
    run = cached_run(settings_of("xlnet", edits=write_interventions([Intervention(path, "zero", head=HEAD)])))
    watched = cached_operations(run).seen.trace[0]
    torch.testing.assert_close(watched.context, run.trace[path].value)


def test_rows_of_a_table_are_tokens_where_it_has_one_for_each(settings_of):
    operations = cached_operations(cached_run(settings_of("gpt2", text="cat")))
    labels = [
        equation(operations, Place(f"transformer.{table}.embedding", 0, 0)).panels[0].rows.labels
        for table in ("wte", "wpe")
    ]
    assert labels == [("a", "c", "t"), ("0", "1", "2")]


def test_another_mask_changes_the_probabilities_of_classes_by_name(settings_of):
    run = cached_run(settings_of("tagger", mask=("causal",)))
    assert run.vocabulary == ("O", "B-PER")
    assert run.trace["probabilities"].value.shape[-1] == 2


def test_an_edit_that_it_does_not_have_is_left_out_with_a_sentence(settings_of):
    run = cached_run(settings_of("bert", edits="no.stage-zero"))
    assert "has no no.stage" in run.complaints[0]
    assert run.settings.edits == ""
    assert not run.interventions


def test_an_edit_may_be_said_by_the_operation_of_the_checkpoint(settings_of):
    run = cached_run(settings_of("llama", edits="model.layers.0.self_attn.matmul_2-h1-zero"))
    assert run.settings.edits == "decoder.layers.0.self_attention.context-h1-zero"
    assert not run.complaints


def test_a_batch_hides_its_padding_and_each_line_is_looked_at_alone(settings_of):
    settings = settings_of("llama", text="the cat\n\nthe", pretrained_batch=True)
    assert settings.mask == ("causal", "padding")
    run = cached_run(settings)
    assert run.n_batch_items == 2
    output = reported(settings)
    path = "decoder.layers.1.self_attention.weights"
    alone = run.at(1).alone()
    torch.testing.assert_close(alone.trace[path].value, output.attentions[1][1:], atol=1e-5, rtol=0)
    assert alone.tokens["source"].is_padding == (False, True, True, True, True)
    assert alone.mask_of(path.removesuffix(".weights")).names == ("causal", "padding")
    whole = replace(settings, pretrained_batch=False)
    assert cached_run(replace(whole, mask=usual_mask(whole))).n_batch_items == 1


def test_its_settings_have_its_shape_and_its_run_is_found_again(settings_of):
    settings = settings_of("t5")
    run = cached_run(settings)
    shape = (run.settings.n_heads, run.settings.n_layers, run.settings.n_decoder_layers)
    assert shape == (4, 2, 0)
    assert cached_run(run.settings) is run


def test_a_recording_of_it_holds_every_attention(settings_of):
    run = cached_run(settings_of("bert", text="the cat"))
    trace = as_trace(run)
    assert [attention.weights is not None for attention in trace] == [True, True]
    assert trace.texts.encoder == (run.tokens["source"].tokens,)


@pytest.mark.parametrize(
    ("family", "text", "batch"),
    [
        ("gpt2", "the cat " * 40, False),
        ("llama", "the cat\n" + "un the cat " * 20, True),
        ("bart", "the " * 90, False),
    ],
)
def test_a_text_that_is_too_long_has_its_beginning_as_the_way_out(family, text, batch, settings_of):
    settings = settings_of(family, text, pretrained_batch=batch)
    with pytest.raises(RefusedError, match=r"The text has .* tokens: .* has positions for 64\.") as refusal:
        prepare(settings)
    way_out = refusal.value.way_out
    assert way_out.label == ("Use the first 64 tokens of each line" if batch else "Use the first 64 tokens")
    assert settings.text.startswith(way_out.changes["text"])
    shorter = replace(settings, **way_out.changes)
    assert 60 <= len(batches_of(input_of(shorter))["source"][-1]) <= 64


def test_what_is_said_to_an_assistant_is_shortened_to_what_its_template_leaves_room_for(settings_of, monkeypatch):
    settings = settings_of("gpt2", "the cat " * 40, pretrained_chat=True)
    template = "the un {{ messages[0].content }} the cat"
    monkeypatch.setattr(checkpoint_of(settings).tokenizer, "chat_template", template)
    with pytest.raises(RefusedError, match=r"The text has .* tokens: .* has positions for 64\.") as refusal:
        prepare(settings)
    way_out = refusal.value.way_out
    shorter = replace(settings, **way_out.changes)
    assert settings.text.startswith(shorter.text)
    assert 60 <= len(input_of(shorter).pieces) <= 64
    n_own = len(input_of(replace(shorter, pretrained_chat=False)).pieces)
    assert n_own < len(input_of(shorter).pieces)
    assert way_out.label == f"Use the first {n_own} tokens"


@pytest.mark.parametrize("of_operations", [False, True])
def test_a_pass_that_takes_too_much_memory_has_a_shorter_text_as_the_way_out(
    of_operations, settings_of, monkeypatch
):
    def run_of(settings):
        return cached_operations(cached_run(settings)) if of_operations else cached_run(settings)

    settings = settings_of("llama", "the cat " * 9)
    checkpoint, given = checkpoint_of(settings), input_of(settings)
    size = n_bytes_of_all(checkpoint, given) if of_operations else n_bytes_of(checkpoint, batches_of(given))
    monkeypatch.setattr("visualizer.runs.checkpoints.MOST_BYTES", size - 1)
    with pytest.raises(RefusedError, match=r"The numbers of this pass would take .* Shorten the text\.") as refusal:
        run_of(settings)
    shorter = replace(settings, **refusal.value.way_out.changes)
    assert run_of(shorter)
    n_tokens, n_fitting = (len(input_of(each).pieces) for each in (settings, shorter))
    assert refusal.value.way_out.label == f"Use the first {n_tokens - 1} tokens"
    assert n_tokens - 3 <= n_fitting < n_tokens


def test_what_is_not_in_memory_is_said(settings_of):
    settings = replace(settings_of("llama"), pretrained_model="elsewhere")
    assert opened(settings) is None
    with pytest.raises(ValueError, match="elsewhere is not open"):
        cached_run(settings)


@pytest.mark.parametrize("family", OTHERS)
def test_other_ways_of_writing_an_attention_are_read_too(family, settings_of):
    settings = settings_of(family, text="the cat sat")
    run = cached_run(settings)
    modules = attention_modules(run.trace)
    for module, expected in zip(modules, reported(settings).attentions, strict=True):
        weights = run.trace[f"{module}.weights"].value
        torch.testing.assert_close(weights, expected[..., : weights.shape[-1]], atol=1e-5, rtol=0)
        assert len(run.axes(f"{module}.weights")[1].labels) == weights.shape[-1]
        assert run.mask_of(module).names in (("causal",), ("causal", "sliding_window"))
    assert len(measure_heads(run, list(modules))) == 2 * 4


def test_a_checkpoint_that_takes_no_other_mask_says_so(settings_of):
    settings = settings_of("bloom", mask=("prefix",))
    with pytest.raises(ValueError, match="runs only with its own"):
        cached_run(settings)


def test_an_edit_on_one_token_first_is_of_the_context_on_more(settings_of, tmp_path):
    settings = settings_of("llama", text="t")  # of one token the values are the context
    made = "decoder.layers.0.self_attention.context-h1"
    cached_run(replace(settings, edits=f"{made}-zero"))
    after = cached_run(replace(settings, text="the cat", edits=f"{made}-r2-zero"))
    plain = cached_run(replace(settings, text="the cat"))
    path = "decoder.layers.0.self_attention.context"
    changed = (after.trace[path].value != plain.trace[path].value).any(-1)[0].nonzero().tolist()
    assert changed == [[1, 2]]


@pytest.mark.parametrize("mask", [(), ("padding",), ("causal", "sliding_window")])
def test_masks_are_for_the_attentions_that_are_found_beside_an_encoder_that_attends_in_blocks(settings_of, mask):
    run = cached_run(settings_of("led", mask=mask))
    assert {path.partition(".")[0] for path in run.masks} == {"decoder"}
    names = run.mask_of("decoder.layers.0.self_attention").names
    assert names == mask


@pytest.mark.parametrize("mask", [(), ("sliding_window",), ("custom",)])
def test_a_mask_over_the_tokens_is_refused_where_a_prompt_stands_before_them(settings_of, mask):
    assert cached_run(settings_of("cpmant")).attentions
    with pytest.raises(ValueError, match="takes no other mask"):
        cached_run(settings_of("cpmant", mask=mask, custom="k <= q"))


def test_an_encoder_that_attends_in_blocks_keeps_its_masks_beside_a_decoder_that_takes_others(settings_of):
    run = cached_run(settings_of("longt5", mask=("sliding_window",)))
    assert run.mask_of("decoder.layers.0.self_attention").names == ("sliding_window",)
    of_encoder = run.attentions["encoder.layers.0.self_attention"]
    assert run.mask_of("encoder.layers.0.self_attention").allowed.shape[-2:] == of_encoder.shape[2:]


@pytest.mark.parametrize("family", ["llama", "mistral", "gpt_oss", "xglm", "t5"])
def test_the_rows_that_a_choice_rests_on_are_drawn_at_the_same_keys_with_a_cache(settings_of, family):
    run = cached_run(settings_of(family, text="the cat sat the cat"))
    writer = writer_of(run)
    plain, cached = (
        steps_picture(run, writer, how, write(writer, how))
        for how in (OneByOne(GREEDY, 3), OneByOne(GREEDY, 3, cached=True))
    )
    assert cached.weights == pytest.approx(plain.weights, abs=1e-5)
    assert [step.computed for step in cached.steps] == [len(writer.prompt), 1, 1]
    in_cache = [len(writer.prompt), len(writer.prompt) + 1]
    if family in ("mistral", "gpt_oss"):  # whose window of 4 is the new token and three from the cache
        in_cache = [3, 3]
    assert [step.from_cache for step in cached.steps] == [0, *in_cache]
    n_source = len(writer.source)
    assert [step.source_computed for step in cached.steps] == [n_source, 0, 0]


def test_of_a_model_with_a_prompt_of_its_own_the_weights_of_the_tokens_are_drawn(settings_of):
    run = cached_run(settings_of("cpmant"))
    writer, how = writer_of(run), OneByOne(GREEDY, 2)
    drawn = steps_picture(run, writer, how, write(writer, how)).weights
    n_tokens = len(writer.prompt)
    for layer, weights in enumerate(drawn[0]):
        last = run.trace[f"decoder.layers.{layer}.self_attention.weights"].value[0, :, -1, -n_tokens:]
        assert weights[:, :n_tokens] == pytest.approx(last.numpy(), abs=1e-5)


def test_the_operations_of_an_encoder_that_attends_in_blocks_are_seen_beside_another_mask_of_the_crossing(
    settings_of,
):
    run = cached_run(settings_of("longt5", mask=("custom",), custom_cross="k == 0"))
    assert run.trace["decoder.layers.0.cross_attention.weights"].value[..., 0].eq(1).all()
    crossing = next(each for each in cached_operations(run).seen.trace if each.is_cross)
    assert crossing.weights[..., 0].eq(1).all()


@pytest.mark.parametrize(("dtype", "is_rounding"), [("float32", False), ("bfloat16", True)])
def test_what_counts_as_rounding_beside_a_cache_follows_from_the_number_type(settings_of, dtype, is_rounding):
    settings = replace(settings_of("llama"), pretrained_dtype=dtype)
    open_checkpoint(cost_of(settings.pretrained_model, dtype), lambda *_: None, dtype=dtype)
    writer = writer_of(cached_run(settings))
    of_a_hundredth = Difference(0.04, 0.375, 34.1, writer.rounding)
    assert of_a_hundredth.is_rounding == is_rounding
    assert not Difference(0.5, 2.0, 34.1, writer.rounding).is_rounding


@pytest.mark.parametrize(
    ("dtype", "of_scores", "holds"),
    [
        (torch.float32, torch.float32, False),
        (torch.bfloat16, torch.float32, True),  # a softmax in float32 between vectors of bfloat16
        (torch.float32, torch.bfloat16, True),  # vectors that were kept in float32
    ],
)
def test_weights_times_values_are_held_against_the_rounding_of_their_type(settings_of, dtype, of_scores, holds):
    run = cached_run(settings_of("llama"))
    (module, attention), *_ = run.attentions.items()
    vectors = {
        "query": attention.query.to(dtype),
        "value": attention.value.to(dtype),
    }  # beside a softmax in float32
    seen = replace(attention, **vectors, dtype=of_scores, difference=0.005 * float(attention.context.abs().max()))
    assert agreement(replace(run, attentions={module: seen}), module).holds == holds


def test_a_context_that_is_nan_as_the_models_own_is_the_same(settings_of):
    run = cached_run(settings_of("llama"))
    (module, attention), *_ = run.attentions.items()
    context = attention.context.clone()
    context[..., 0, :] = torch.nan
    assert agreement(
        replace(run, attentions={module: replace(attention, context=context, difference=1e-9)}), module
    ).holds
