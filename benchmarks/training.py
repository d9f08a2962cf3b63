"""A measurement of how well and how fast the tasks are learned.

    python benchmarks/training.py                          every task, seeds 0 to 4
    python benchmarks/training.py reverse copy --seeds 0 1

For each task and seed: the held-out texts answered without a mistake, the seconds on the clock and on the processor
(they differ where others want it too), and for a decoder the greatest induction score of a head. Then the time of
one training step beside that of the same loop over ``nn.Transformer``.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from model import Transformer, record, sinusoidal_encoding  # noqa: E402 - the project is not installed
from model.analysis.metrics import Attention, induction  # noqa: E402
from model.learning.tasks import PAD, TASKS, Batch, make_batch, training_texts  # noqa: E402
from model.learning.training import (  # noqa: E402
    RECIPES,
    Recipe,
    cross_entropy,
    exact_match,
    held_out_batch,
    model_with,
    train,
)
from model.randomness import named_generator  # noqa: E402
from model.sources.weights import build_model  # noqa: E402

TESTED = 2000
SECONDS = {"reverse": 15, "copy": 15, "sort": 30, "remove_vowels": 30, "add": 90, "repeat_block": 120}
"""Within how many seconds a task should be learned on two idle cores."""

STEPS_TIMED, STEPS_BEFORE = 200, 30


def main() -> None:
    torch.set_num_threads(1)  # as the app does
    parser = argparse.ArgumentParser()
    parser.add_argument("tasks", nargs="*", help=f"from {', '.join(TASKS)}; all unless given")
    parser.add_argument("--seeds", nargs="*", type=int, default=range(5))
    chosen = parser.parse_args()
    print(f"Python {sys.version.split()[0]}, PyTorch {torch.__version__}, {os.cpu_count()} cores, {load()}\n")
    for task in chosen.tasks or TASKS:
        for seed in chosen.seeds:
            measure_training(replace(RECIPES[task], seed=seed))
    measure_steps(RECIPES["reverse"])
    measure_steps(RECIPES["add"])


def load() -> str:
    return f"{os.getloadavg()[0]:.1f} processes running"


def measure_training(recipe: Recipe) -> None:
    start, busy = time.perf_counter(), time.thread_time()
    last = deque(train(recipe), maxlen=1)[0]
    seconds, busy_seconds = time.perf_counter() - start, time.thread_time() - busy
    model = model_with(recipe, last.weights)
    held_out = held_out_batch(TASKS[recipe.task], TESTED)
    allowed = f"of {SECONDS[recipe.task]} s" if recipe.task in SECONDS else ""
    scores = f"   induction {induction_score(model, held_out):.3f}" if model.encoder is None else ""
    print(
        f"{recipe.task:15} seed {recipe.seed}   exact match {exact_match(model, held_out):7.2%}   "
        f"{seconds:5.1f} s, {busy_seconds:5.1f} s computing {allowed:8}   {load()}{scores}",
        flush=True,
    )


def induction_score(model: Transformer, batch: Batch) -> float:
    """The greatest of all heads of a decoder."""
    with torch.inference_mode(), record(model) as trace:
        model(*batch.inputs, **batch.masks)
    ids = batch.inputs[0]
    weights = [stage.value for path, stage in trace.items() if path.endswith("self_attention.weights")]
    scores = [induction(Attention(each, ids, ids, ids == PAD, ids == PAD, True)) for each in weights]
    return torch.cat(scores).max().item()


# One step beside one of PyTorch's own modules.


class PyTorchModel(nn.Module):
    """The same architecture around ``nn.Transformer``, which has no trace."""

    def __init__(self, recipe: Recipe) -> None:
        super().__init__()
        config = recipe.config
        self.scale = config.d_model**0.5
        self.source_tokens = nn.Embedding(config.vocab_size, config.d_model)
        self.target_tokens = nn.Embedding(config.vocab_size, config.d_model)
        self.transformer = nn.Transformer(
            config.d_model,
            config.n_heads,
            config.n_layers,
            config.n_layers,
            config.d_ff,
            dropout=0.0,
            batch_first=True,
        )
        self.transformer.encoder.norm = self.transformer.decoder.norm = None
        self.unembedding = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.register_buffer("positions", sinusoidal_encoding(config.max_len, config.d_model).float())

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Ids to logits, (B, T, V)."""
        source_is_padding = source == PAD
        later = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).triu(1)
        x = self.transformer(
            self.source_tokens(source) * self.scale + self.positions[: source.shape[1]],
            self.target_tokens(target) * self.scale + self.positions[: target.shape[1]],
            tgt_mask=later,
            src_key_padding_mask=source_is_padding,
            tgt_key_padding_mask=target == PAD,
            memory_key_padding_mask=source_is_padding,
        )
        return self.unembedding(x)


def stepper(recipe: Recipe, model: nn.Module, loss_of: Callable[[Batch], Tensor]) -> Callable[[], float]:
    """A function that does one training step and returns its seconds."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98), fused=True)
    generator = named_generator(0, "benchmark")

    def step() -> float:
        start = time.perf_counter()
        batch = make_batch(TASKS[recipe.task], training_texts(TASKS[recipe.task], recipe.batch_size, generator))
        optimizer.zero_grad()
        loss_of(batch).backward()
        optimizer.step()
        return time.perf_counter() - start

    return step


def measure_steps(recipe: Recipe) -> None:
    ours = build_model(recipe.config, "random", 0)
    theirs = PyTorchModel(recipe)
    steps = (
        stepper(recipe, ours, lambda batch: cross_entropy(ours(*batch.inputs, **batch.masks), batch.labels)),
        stepper(recipe, theirs, lambda batch: logits_loss(theirs(*batch.inputs), batch.labels)),
    )
    times = [[step() for step in steps] for _ in range(STEPS_BEFORE + STEPS_TIMED)][STEPS_BEFORE:]
    seconds = [statistics.median(column) for column in zip(*times, strict=True)]
    ratio = statistics.median(mine / other for mine, other in times)
    print(
        f"\nOne step of {recipe.task}: {1e3 * seconds[0]:.2f} ms, over nn.Transformer {1e3 * seconds[1]:.2f} ms; "
        f"ratio {ratio:.2f} (to reach: 1.10)   {load()}"
    )


def logits_loss(logits: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=PAD)


if __name__ == "__main__":
    main()
