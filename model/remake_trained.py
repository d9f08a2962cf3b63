"""Make the models that come with the program again: ``python -m model.remake_trained [task ...]``.

They are narrow where that is enough, so that all together are below 1 MB, and are then trained for longer.
"""

from __future__ import annotations

import sys
from collections import deque
from dataclasses import replace

import torch

from model.checkpoints import SHIPPED, Checkpoint, dump, load
from model.tasks import TASKS
from model.training import RECIPES, Recipe, exact_match, held_out_batch, model_with, train

RIGHT = 0.99
"""The least share of held-out texts that a model has to answer."""

_TESTED = 2000
_WIDE = ("reverse", "add", "repeat_block")


def shipped_recipe(task: str) -> Recipe:
    """What the model for a task is trained by."""
    recipe = RECIPES[task]
    if task in _WIDE:
        return recipe
    return replace(recipe, d_model=32, d_ff=64, batch_size=64, steps=1500)


def remake(recipe: Recipe) -> bytes:
    """Train a model and give the content of its file, in half precision.

    Raises:
        RuntimeError: as it is read back, it answers less than ``RIGHT`` of the held-out texts.
    """
    last = deque(train(recipe), maxlen=1)[0]
    content = dump(Checkpoint(recipe, last.step, last.weights), torch.float16)
    model = model_with(recipe, load(content).weights)
    right = exact_match(model, held_out_batch(TASKS[recipe.task], _TESTED))
    if right < RIGHT:
        raise RuntimeError(f"{recipe.task}: {right:.1%} of the held-out texts are answered, less than {RIGHT:.0%}")
    print(f"{recipe.task:16} {right:7.2%} {len(content):9,} bytes", flush=True)
    return content


def main() -> None:
    """Write the files of the tasks named, or of all."""
    torch.set_num_threads(1)
    SHIPPED.mkdir(exist_ok=True)
    for task in sys.argv[1:] or TASKS:
        (SHIPPED / f"{task}.safetensors").write_bytes(remake(shipped_recipe(task)))


if __name__ == "__main__":
    main()
