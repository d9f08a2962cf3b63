"""A checkpoint in memory, and the shelf on which all sessions find it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from headlight.pretrained.checkpoint_places import reason_in_words, weight_files
from headlight.pretrained.memory_needed import in_words, most_bytes, n_weights
from model.texts import listed

Part = Literal["encoder", "decoder", "encoder-decoder"]
"""A kind of model: an encoder reads a text, a decoder continues one, an encoder-decoder turns one into another."""

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
"""The number types that weights can be loaded in."""

SPREAD = "auto"
"""The device of a model that is spread over all there are."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A model that was loaded, with its tokenizer.

    Attributes:
        name: what it was asked for by.
        model: in evaluation mode, never changed.
        tokenizer: its own.
        part: what it is.
        n_bytes: the memory of its weights.
        notes: what is not as in the files; one sentence each.
        lock: held during a pass: one pass at a time runs in a model.
    """

    name: str
    model: nn.Module
    tokenizer: Any
    part: Part
    n_bytes: int
    notes: tuple[str, ...] = ()
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def config(self) -> Any:  # noqa: ANN401 - of transformers
        """The configuration of what reads text, in which the checkpoint states its sizes."""
        return self.model.config.get_text_config()  # type: ignore[union-attr, operator]

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes that it sorts each token into; none where it does nothing like it."""
        names = self.config.id2label if _sorts_tokens(self.model) else {}
        return tuple(str(names[number]) for number in sorted(names))

    @property
    def n_tokens(self) -> int:
        """The number of tokens in its vocabulary; 0 where that is not said."""
        return int(getattr(self.config, "vocab_size", 0) or 0)

    @property
    def n_weights(self) -> int:
        """The number of its learned weights."""
        return sum(weight.numel() for weight in self.model.parameters())

    @property
    def device(self) -> torch.device:
        """The device that its inputs go to: that of its first weights that are not left on the disk."""
        places = (weight.device for weight in self.model.parameters())
        return next((place for place in places if place.type != "meta"), torch.device("cpu"))

    @property
    def most_tokens(self) -> int | None:
        """The longest sequence that it has positions for; None where any will do."""
        for name in ("max_position_embeddings", "n_positions"):
            if isinstance(most := getattr(self.config, name, None), int) and most > 0:
                return most
        return None

    @property
    def chats(self) -> bool:
        """True if it comes with a template for what is said to it."""
        return bool(getattr(self.tokenizer, "chat_template", None))


def devices() -> tuple[str, ...]:
    """Return the devices of this machine that a model can be loaded on."""
    from importlib.util import find_spec

    found = [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        found.append("mps")
    spread = [SPREAD] if torch.cuda.is_available() and find_spec("accelerate") else []
    return ("cpu", *found, *spread)


def memory_of(folder: Path, dtype: str) -> int:
    """The bytes that the weights of a folder will take.

    Raises:
        ValueError: a file is damaged.
    """
    return n_weights(weight_files(folder)) * DTYPES[dtype].itemsize


def refuse_above(n_bytes: int, name: str) -> None:
    """Refuse what would take more memory than there is for checkpoints.

    Raises:
        ValueError: one sentence with both sizes.
    """
    if n_bytes > (most := most_bytes()):
        raise ValueError(
            f"{name} takes {in_words(n_bytes)} of memory; the limit here is {in_words(most)}. Take bfloat16, which "
            "halves it, a smaller checkpoint, or set HEADLIGHT_MEMORY_GB."
        )


def load(name: str, folder: Path, *, dtype: str = "float32", device: str = "cpu") -> Checkpoint:
    """Load the safetensors of a folder with the classes of ``transformers``. No code of the checkpoint is run.

    Args:
        name: what it was asked for by.
        folder: with ``config.json``, the weights and the tokenizer.
        dtype: one of ``DTYPES``.
        device: one of ``devices()``.

    Raises:
        ValueError: it takes too much memory, is of a family that is not known, reads no text, or is damaged; one
            sentence.
    """
    from huggingface_hub.errors import StrictDataclassError
    from transformers import AutoConfig, AutoTokenizer
    from transformers.utils import logging

    refuse_above(memory_of(folder, dtype), name)
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except StrictDataclassError as error:
        reason = str(error).splitlines()[-1].strip()
        raise ValueError(f"{name} has a configuration that transformers refuses: {reason}") from error
    except (ValueError, OSError, KeyError) as error:
        raise ValueError(
            f"{name} is of no family that transformers knows; code that comes with a checkpoint is never run."
        ) from error
    without = f"{name} comes without a tokenizer that can be read, so no text can be given to it."
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # each family has errors of its own
        raise ValueError(without) from error
    files = tokenizer.vocab_files_names.values()  # none where tokens are bytes or characters
    if files and not any((folder / file).exists() for file in ("tokenizer.json", *files)):
        raise ValueError(without)  # it was made, but knows nothing
    if (read := getattr(_class_of(config), "main_input_name", "input_ids")) != "input_ids":
        raise ValueError(f"{name} reads {read}: text alone is not enough.")
    model, notes = _model(name, folder, config, dtype, device)
    size = sum(weight.nbytes for weight in {id(weight): weight for weight in model.parameters()}.values())
    return Checkpoint(name, model, tokenizer, _part(model), size, notes)


def _model(name: str, folder: Path, config: Any, dtype: str, device: str) -> tuple[nn.Module, tuple[str, ...]]:  # noqa: ANN401
    place = {"device_map": "auto"} if device == SPREAD else {}
    try:
        model, info = _class_of(config).from_pretrained(
            folder,
            config=config,
            dtype=DTYPES[dtype],
            attn_implementation="eager",  # it writes its weights out, so that what is seen is what it went on with
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            output_loading_info=True,
            **place,
        )
    except Exception as error:  # each family has errors of its own
        raise ValueError(f"{name} cannot be loaded: {reason_in_words(error)}") from error
    missing = sorted(info["missing_keys"])
    names = listed(missing, 3)
    random = f"The files hold no weights for {names}: these are random, and so is what follows from them."
    notes = (random,) if missing else ()
    model.eval().requires_grad_(False)
    return (model if device == SPREAD else model.to(device)), notes


def _class_of(config: Any) -> Any:  # noqa: ANN401
    """The class that the checkpoint was saved from, where ``transformers`` has it; else the family's plain one."""
    import transformers

    for architecture in config.architectures or ():
        found = getattr(transformers, architecture, None)
        if isinstance(found, type) and issubclass(found, transformers.PreTrainedModel):
            return found
    found = transformers.MODEL_MAPPING.get(type(config), None)
    return found if isinstance(found, type) else transformers.AutoModel


def _part(model: Any) -> Part:  # noqa: ANN401
    if model.config.is_encoder_decoder:
        return "encoder-decoder"
    return "decoder" if model.can_generate() or _is_headless_decoder(model) else "encoder"


def _is_headless_decoder(model: Any) -> bool:  # noqa: ANN401
    """True if a model is of a family that continues texts and none that fills gaps, without the layer that does."""
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    )

    family = model.config.get_text_config().model_type
    continues = family in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and family not in MODEL_FOR_MASKED_LM_MAPPING_NAMES
    return continues and not _sorts_tokens(model)


def _sorts_tokens(model: object) -> bool:
    return type(model).__name__.endswith("ForTokenClassification")


Key = tuple[str, str, str]
"""A checkpoint as it is asked for: its name, its number type and its device."""


class Shelf:
    """The checkpoints in memory, shared by all sessions. The one that was used least recently goes first.

    Args:
        room: the most bytes that all may take together; that of ``most_bytes`` unless given.
    """

    def __init__(self, room: int | None = None) -> None:
        self._room = room
        self._lock = threading.Lock()
        self._loaded: OrderedDict[Key, Checkpoint] = OrderedDict()

    @property
    def room(self) -> int:
        """The most bytes that all may take together."""
        return most_bytes() if self._room is None else self._room

    def get(self, key: Key) -> Checkpoint | None:
        """A checkpoint that was loaded; None where it never was, or had to go."""
        with self._lock:
            if key in self._loaded:
                self._loaded.move_to_end(key)
            return self._loaded.get(key)

    def put(self, key: Key, checkpoint: Checkpoint) -> Checkpoint:
        """Keep a checkpoint, and forget others until it fits."""
        with self._lock:
            self._loaded[key] = checkpoint
            self._loaded.move_to_end(key)
            self._forget(0)
        return checkpoint

    def make_room(self, n_bytes: int) -> None:
        """Forget checkpoints until another of so many bytes fits: the old and the new are never both in memory."""
        with self._lock:
            self._forget(n_bytes)

    def _forget(self, coming: int) -> None:
        least = 0 if coming else 1
        while len(self._loaded) > least and self._taken() + coming > self.room:
            self._loaded.popitem(last=False)

    def _taken(self) -> int:
        return sum(checkpoint.n_bytes for checkpoint in self._loaded.values())


SHELF = Shelf()
"""The checkpoints of this process."""
