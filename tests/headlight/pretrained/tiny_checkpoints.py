"""Small random checkpoints in folders, each with a tokenizer that was made here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

from headlight.pretrained.tokenized import byte_of_character

SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32}
GPT = {"n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": 64}
LLAMA = {**SIZES, "num_key_value_heads": 2, "head_dim": 4, "max_position_embeddings": 64}
BART = {
    **{f"{side}_{what}": number for side in ("encoder", "decoder") for what, number in
       (("layers", 2), ("attention_heads", 4), ("ffn_dim", 32))},
    "d_model": 16, "max_position_embeddings": 64,
}  # fmt: skip
T5 = {"d_model": 16, "d_kv": 4, "num_layers": 2, "num_heads": 4, "d_ff": 32}

FAMILIES = {
    "gpt2": ("GPT2LMHeadModel", GPT),
    "llama": ("LlamaForCausalLM", LLAMA),
    "qwen3": ("Qwen3ForCausalLM", LLAMA),
    "bert": ("BertModel", {**SIZES, "max_position_embeddings": 64}),
    "bart": ("BartForConditionalGeneration", BART),
    "t5": ("T5ForConditionalGeneration", T5),
}
OTHERS = {
    "gpt_oss": (
        "GptOssForCausalLM",
        {**LLAMA, "num_local_experts": 2, "num_experts_per_tok": 1, "sliding_window": 4},
    ),
    "mistral": ("MistralForCausalLM", {**LLAMA, "sliding_window": 4}),
    "bloom": ("BloomForCausalLM", {"hidden_size": 16, "n_layer": 2, "n_head": 4}),
    "xglm": ("XGLMForCausalLM", {"d_model": 16, "num_layers": 2, "attention_heads": 4, "ffn_dim": 32}),
    "llava": (
        "LlavaForConditionalGeneration",
        {
            "text_config": {**LLAMA, "model_type": "llama"},
            "vision_config": {**SIZES, "model_type": "clip_vision_model", "image_size": 32, "patch_size": 16},
        },
    ),
}
"""With sinks, with windows, sequences and heads in one axis, of the keys or of all; beside a reader of pictures."""

BERT = {**SIZES, "max_position_embeddings": 64}
CLASSIFIERS = {
    "tagger": ("BertForTokenClassification", {**BERT, "id2label": {0: "O", 1: "B-PER"}}),
    "finder": ("BertForQuestionAnswering", BERT),
}
"""With two numbers for each token: the classes that it may be of; where an answer begins and ends."""

UNUSUAL = {
    "albert": ("AlbertModel", {**SIZES, "embedding_size": 8, "max_position_embeddings": 64}),
    "cpmant": ("CpmAntForCausalLM", {**SIZES, "dim_head": 4, "dim_ff": 32, "prompt_length": 4}),
    "xlnet": ("XLNetLMHeadModel", {"d_model": 16, "n_layer": 2, "n_head": 4, "d_inner": 32}),
    "mamba": ("MambaForCausalLM", {"hidden_size": 16, "num_hidden_layers": 2, "state_size": 4}),
}
"""With one module for all layers, a prompt before the tokens, tokens in the first axis, and without attention."""

IN_BLOCKS = {
    "led": ("LEDForConditionalGeneration", {**BART, "attention_window": 4}),
    "longt5": ("LongT5ForConditionalGeneration", T5),
}
"""With an encoder that attends block by block."""

SPECIALS = ("<pad>", "<s>", "</s>", "<unk>")


def saved(family: str, folder: Path) -> Path:
    """A random model of a family, with its tokenizer, as a checkpoint."""
    sizes: dict[str, Any]
    name, sizes = {**FAMILIES, **OTHERS, **CLASSIFIERS, **UNUSUAL, **IN_BLOCKS}[family]
    has_words = family in ("bert", "albert", *CLASSIFIERS)
    tokenizer = wordpiece() if has_words else byte_level(ends=family in ("bart", "t5", *IN_BLOCKS))
    kind = getattr(transformers, name)
    of_tokens = {"vocab_size": len(tokenizer), "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    if "text_config" in sizes:
        config = kind.config_class(**{**sizes, "text_config": {**sizes["text_config"], **of_tokens}})
    else:
        config = kind.config_class(**of_tokens, **sizes, decoder_start_token_id=2)
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        model = kind(config)
        for weight in model.parameters():  # far from the small numbers of the first step, so that heads differ
            weight.data += 0.2 * torch.randn_like(weight)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def byte_level(*, ends: bool) -> transformers.PreTrainedTokenizerFast:
    """A vocabulary of bytes as GPT-2 writes them, with a few words; it may end each text."""
    characters = [*byte_of_character()]
    vocabulary = {token: place for place, token in enumerate([*SPECIALS, *characters, "th", "the", "Ġthe"])}
    tokenizer = Tokenizer(models.BPE(vocabulary, [("t", "h"), ("th", "e"), ("Ġ", "the")]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    if ends:
        tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 2)])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )


def wordpiece() -> transformers.PreTrainedTokenizerFast:
    """A vocabulary of words and parts of words, with the templates of BERT."""
    words = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "the", "cat", "sat", "un", "##able", "."]
    tokenizer = Tokenizer(models.WordPiece({word: place for place, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]", unk_token="[UNK]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )  # fmt: skip
