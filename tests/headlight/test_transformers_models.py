"""Small random models of the families of ``transformers``: the weights are those that the library reports."""

from typing import Any

import pytest
import torch

import headlight

transformers = pytest.importorskip("transformers", reason="transformers is not installed")

IDS = torch.tensor([[5, 9, 22, 31, 8, 60, 17]])
PADDED = {
    "input_ids": torch.cat([IDS, IDS.flip(1)]),
    "attention_mask": torch.tensor([[1] * 7, [1] * 4 + [0] * 3]),
}
NAMES = {"vocab_size": 99, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
GPT = {**NAMES, "n_embd": 16, "n_layer": 2, "n_head": 4}
USUAL = {**NAMES, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32}
GROUPED = {**USUAL, "num_key_value_heads": 2, "head_dim": 4}
TWO_STACKS = {
    **{f"{side}_{what}": number for side in ("encoder", "decoder") for what, number in
       (("layers", 2), ("attention_heads", 4), ("ffn_dim", 32))},
    "d_model": 16,
}  # fmt: skip

DECODERS = {
    "gpt2": ("GPT2LMHeadModel", GPT),
    "gptj": ("GPTJForCausalLM", {**GPT, "rotary_dim": 4}),
    "bloom": ("BloomForCausalLM", {**NAMES, "hidden_size": 16, "n_layer": 2, "n_head": 4}),
    "llama": ("LlamaForCausalLM", GROUPED),
    "qwen3": ("Qwen3ForCausalLM", GROUPED),
    "mistral": ("MistralForCausalLM", {**GROUPED, "sliding_window": 3}),
    "gemma2": ("Gemma2ForCausalLM", {**GROUPED, "sliding_window": 3, "query_pre_attn_scalar": 4}),
    "gpt_neox": ("GPTNeoXForCausalLM", USUAL),
    "falcon": ("FalconForCausalLM", {**USUAL, "multi_query": True}),
    "opt": ("OPTForCausalLM", {**USUAL, "ffn_dim": 32, "word_embed_proj_dim": 16, "max_position_embeddings": 16}),
}
SINKS: dict[str, Any] = {
    **{"num_local_experts": 2, "num_experts_per_tok": 1, "sliding_window": 4},
    "layer_types": ["sliding_attention", "full_attention"],
}  # fmt: skip
DECODERS |= {
    "mpt": ("MptForCausalLM", {**NAMES, "d_model": 16, "n_heads": 4, "n_layers": 2, "expansion_ratio": 2}),
    "gpt_oss": ("GptOssForCausalLM", {**GROUPED, **SINKS}),
    "bitnet": ("BitNetForCausalLM", GROUPED),
    "ctrl": ("CTRLLMHeadModel", {**NAMES, "n_positions": 16, "n_embd": 16, "dff": 32, "n_layer": 2, "n_head": 4}),
}
ENCODERS = {
    "bert": ("BertModel", USUAL),
    "distilbert": ("DistilBertModel", {**NAMES, "dim": 16, "n_layers": 2, "n_heads": 4, "hidden_dim": 32}),
}
ENCODER_DECODERS = {
    "bart": ("BartModel", {**NAMES, **TWO_STACKS}),
    "t5": (
        "T5ForConditionalGeneration",
        {**NAMES, "d_model": 16, "d_kv": 4, "num_layers": 2, "num_heads": 4, "d_ff": 32},
    ),
}
FAMILIES = {**DECODERS, **ENCODERS, **ENCODER_DECODERS}


KEY_HEADS = {"llama": 2, "bitnet": 2, "qwen3": 2, "mistral": 2, "gemma2": 2, "falcon": 1, "gpt_oss": 2}


def built(family, **more):
    """A random model of a family, in evaluation mode."""
    name, options = FAMILIES[family]
    model = getattr(transformers, name)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return model._from_config(model.config_class(**options), **more).eval()


def reported(family, inputs):
    """The weights that the library gives itself, computed by its own written-out attention."""
    output = built(family, attn_implementation="eager")(**inputs, output_attentions=True)
    names = ("encoder_attentions", "decoder_attentions", "cross_attentions", "attentions")
    return [weights for name in names for weights in getattr(output, name, None) or ()]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_weights_are_those_that_the_library_reports(family):
    model, inputs = built(family), _inputs(family)
    with torch.no_grad():
        plain = model(**inputs)[0]
        with headlight.watch(model) as trace:
            assert torch.equal(model(**inputs)[0], plain)
        expected = reported(family, inputs)
    assert trace.notes == ()
    assert len(trace) == len(expected)
    if family in ENCODER_DECODERS:  # theirs are sorted, ours are in the order computed: self, cross, self, cross
        trace = [*trace[:2], *trace[2::2], *trace[3::2]]
    for seen, weights in zip(trace, expected, strict=True):
        for item, n_real in (
            (0, 7),
            (1, 4),
        ):  # what a padding query sees differs from one implementation to another
            of_tokens = seen.weights[item, :, :n_real, : weights.shape[-1]]
            torch.testing.assert_close(of_tokens, weights[item, :, :n_real].float())
        assert seen.key_heads == KEY_HEADS.get(family, 4)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_keeps_what_its_masks_promise(family):
    model = built(family)
    assert not headlight.check(model, **_inputs(family)).errors
    if family not in ENCODERS:
        of = "decoder_input_ids" if family in ENCODER_DECODERS else None
        headlight.assert_causal(model, of=of, **_inputs(family))
    else:
        with pytest.raises(AssertionError, match="comes later"):
            headlight.assert_causal(model, IDS)
    headlight.assert_sequences_do_not_mix(model, of=of_tokens(family), **_inputs(family))
    headlight.assert_padding_ignored(model, alone=family not in SHIFTED, of="input_ids", **_inputs(family))


SHIFTED = ("t5",)
"""Families whose positions count from the last token, so that what is cut off behind it changes nothing real."""


def of_tokens(family):
    """The tokens whose rows the output has."""
    return "decoder_input_ids" if family in ENCODER_DECODERS else "input_ids"


@pytest.mark.parametrize("family", ENCODER_DECODERS)
def test_a_decoder_that_is_given_the_ids_of_its_encoder_is_causal(family):
    given = {**PADDED, "decoder_input_ids": PADDED["input_ids"]}
    proof = headlight.assert_causal(built(family), of="decoder_input_ids", **given)
    assert "every derivative is exactly zero" in str(proof)


def test_documents_that_positions_tell_and_a_default_cache_forgets_are_named():
    model = built("llama")
    given = {"input_ids": IDS, "position_ids": torch.tensor([[0, 1, 2, 0, 1, 2, 3]])}
    (error, _) = headlight.check(model, **given).errors
    assert "Documents see each other" in error
    assert not headlight.check(model, use_cache=False, **given).errors


PICTURE = {
    "image_size": 32,
    "patch_size": 4,
    "embed_dim": 16,
    "depths": [2, 2],
    "num_heads": [2, 4],
    "window_size": 4,
}
LONG = {**USUAL, "attention_window": 4, "max_position_embeddings": 20}
BLOCKS = {**USUAL, "block_size": 2, "num_random_blocks": 1, "max_position_embeddings": 64}
OTHERS = {
    "swin": ("SwinModel", PICTURE, {"pixel_values": torch.linspace(-1, 1, 6144).view(2, 3, 32, 32)}, ""),
    "xlnet": ("XLNetLMHeadModel", {**NAMES, "d_model": 16, "n_layer": 2, "n_head": 4, "d_inner": 32}, PADDED, ""),
    "roberta": ("RobertaForCausalLM", {**USUAL, "is_decoder": True, "max_position_embeddings": 20}, PADDED, ""),
    "longformer": (
        "LongformerModel",
        LONG,
        {**PADDED, "global_attention_mask": torch.tensor([[1] + [0] * 6] * 2)},
        "This is a part of an attention",
    ),
    "big_bird": (
        "BigBirdModel",
        {**BLOCKS, "attention_type": "block_sparse"},
        {"input_ids": torch.arange(48).view(2, 24) + 3},
        "This is a part of an attention",
    ),
    "mamba": (
        "MambaForCausalLM",
        {**NAMES, "hidden_size": 16, "num_hidden_layers": 2, "state_size": 4},
        {"input_ids": IDS},
        "In MambaForCausalLM no softmax was followed from products of queries and keys to values.",
    ),
    "rwkv": (
        "RwkvForCausalLM",
        {**NAMES, "hidden_size": 16, "num_hidden_layers": 2, "context_length": 16, "attention_hidden_size": 16},
        {"input_ids": IDS},
        "ran, but no attention was seen in it: no softmax was followed",
    ),
}


@pytest.mark.parametrize("family", OTHERS)
def test_other_models_run_on_bitwise_and_what_is_said_of_them_is_true(family, monkeypatch):
    name, options, inputs, said = OTHERS[family]
    monkeypatch.setitem(FAMILIES, family, (name, options))
    model = built(family)
    with torch.no_grad():
        plain = model(**inputs)[0]
        for keep in ("weights", "all"):
            with headlight.watch(model, keep=keep) as trace:
                assert torch.equal(model(**inputs)[0], plain)
            assert headlight.load(trace.to_bytes()).paths == trace.paths
    report = headlight.check(model, **inputs)
    assert not [finding for _, finding in report.findings if finding.severity != "note"]
    assert said in str(report)


def test_rwkv_has_no_derivative_and_is_judged_by_changed_tokens(monkeypatch):
    monkeypatch.setitem(FAMILIES, "rwkv", OTHERS["rwkv"][:2])
    proof = headlight.assert_causal(built("rwkv"), IDS)
    assert "measured by changing tokens" in str(proof)


def _inputs(family):
    decoder = {"decoder_input_ids": IDS.expand(2, -1)} if family in ENCODER_DECODERS else {}
    return {**PADDED, **decoder}
