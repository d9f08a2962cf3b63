"""A person's choices in the Train view, as one frozen value, and its part of the link.

Like ``Settings`` it knows nothing of torch: the numbers of a recipe are read from the shipped models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

from model.texts import texts_of
from visualizer.settings.fields import Field, fields_of, setting
from visualizer.settings.link import read_part, write_part
from visualizer.settings.trained_models import TRAINED_MODELS

say = texts_of(__name__)

NO_EXPERIMENT = "none"

ATTENTIONS: Mapping[str, tuple[str, ...]] = {
    "encoder-decoder": ("decoder.cross_attention", "decoder.self_attention", "encoder.self_attention"),
    "decoder": ("decoder.self_attention",),
    "encoder": ("encoder.self_attention",),
}
"""The attentions of each architecture; the first is the one that reads the text to answer it."""


@dataclass(frozen=True)
class ExperimentTitle:
    """The title of an experiment, known before torch is loaded.

    Attributes:
        title: what a person reads.
        task: what both of its models learn.
        attention: the one that answers its question.
    """

    title: str
    task: str
    attention: str


EXPERIMENT_TITLES: Mapping[str, ExperimentTitle] = {
    "no_causal_mask": ExperimentTitle(say("no_causal_mask"), "reverse", "decoder.self_attention"),
    "no_positions": ExperimentTitle(say("no_positions"), "reverse", "decoder.cross_attention"),
    "no_positions_sort": ExperimentTitle(say("no_positions_sort"), "sort", "decoder.cross_attention"),
    "no_scaling": ExperimentTitle(say("no_scaling"), "reverse", "decoder.cross_attention"),
    "heads": ExperimentTitle(say("heads"), "add", "decoder.cross_attention"),
}
"""The experiments, in the order of their buttons."""


LAST_STEP = 20_000
"""The most steps; as the moment that is looked at, the last of a training of any length."""

NUMBERS = ("n_heads", "n_layers", "d_model", "d_ff", "steps", "seed", "learning_rate")
"""The numbers of a recipe that can be changed; with ``train_`` before it, each is the name of its field."""

_REVERSE = TRAINED_MODELS["reverse"]


@dataclass(frozen=True)
class TrainingChoice:
    """The choice of what is trained, and what is looked at there."""

    train_task: str = setting("reverse", choices={task: trained.title for task, trained in TRAINED_MODELS.items()})
    train_experiment: str = setting(
        NO_EXPERIMENT,
        choices={NO_EXPERIMENT: say("intact")} | {name: each.title for name, each in EXPERIMENT_TITLES.items()},
    )
    train_n_heads: int = setting(_REVERSE.recipe["n_heads"], least=1, most=16)
    train_n_layers: int = setting(_REVERSE.recipe["n_layers"], least=1, most=4)
    train_d_model: int = setting(_REVERSE.recipe["d_model"], least=2, most=128)
    train_d_ff: int = setting(_REVERSE.recipe["d_ff"], least=1, most=512)
    train_steps: int = setting(_REVERSE.recipe["steps"], least=1, most=LAST_STEP)
    train_seed: int = setting(_REVERSE.recipe["seed"], most=2**32 - 1)
    train_learning_rate: float = setting(_REVERSE.recipe["learning_rate"], most=0.1)
    train_text: str = setting(_REVERSE.example)
    train_attention: str = setting(
        "decoder.cross_attention",
        choices=("decoder.cross_attention", "decoder.self_attention", "encoder.self_attention"),
    )
    train_layer: int = setting(_REVERSE.recipe["n_layers"] - 1, most=3)
    train_step: int = setting(LAST_STEP, most=LAST_STEP)
    train_started: str = setting("", kind="identifier")


TRAINING: Mapping[str, Field] = fields_of(TrainingChoice)
"""Every parameter by name."""


def usual_choice(task: str, experiment: str = NO_EXPERIMENT) -> TrainingChoice:
    """A task, or the task of an experiment, as it is opened."""
    broken = EXPERIMENT_TITLES.get(experiment)
    trained = TRAINED_MODELS[broken.task if broken else task]
    attentions = ATTENTIONS[trained.shape["architecture"]]
    return TrainingChoice(
        train_task=trained.task,
        train_experiment=experiment,
        **{f"train_{name}": trained.recipe[name] for name in NUMBERS},
        train_text=trained.example,
        train_attention=broken.attention if broken else attentions[0],
        train_layer=trained.recipe["n_layers"] - 1,
        train_step=LAST_STEP,
    )


OPENING = TrainingChoice()
"""The choice that the view opens with."""


def fitted_training(choice: TrainingChoice) -> TrainingChoice:
    """The nearest choice that can be combined: an experiment has its own recipe, a task its own architecture."""
    usual = usual_choice(choice.train_task, choice.train_experiment)
    if choice.train_experiment != NO_EXPERIMENT:
        fixed = ("train_task", *(f"train_{name}" for name in NUMBERS))
        choice = replace(choice, **{name: getattr(usual, name) for name in fixed})
    offered = ATTENTIONS[TRAINED_MODELS[choice.train_task].shape["architecture"]]
    return replace(
        choice,
        train_attention=choice.train_attention if choice.train_attention in offered else usual.train_attention,
        train_layer=min(choice.train_layer, choice.train_n_layers - 1),
    )


def read_training(query: Mapping[str, Sequence[str]]) -> tuple[TrainingChoice, tuple[str, ...]]:
    """Read Train's part of a link: the choice, and one plain sentence for each parameter that was changed."""
    first, _ = read_part(query, OPENING)
    asked, notices = read_part(query, usual_choice(first.train_task, first.train_experiment))
    chosen = fitted_training(asked)
    for field in fields(chosen):
        before, after = getattr(asked, field.name), getattr(chosen, field.name)
        if query.get(field.name) and before != after:
            notices[field.name] = say("does_not_fit", name=field.name, before=before, after=after)
    return chosen, tuple(notices.values())


def write_training(choice: TrainingChoice) -> dict[str, str]:
    """Train's part of the link: what differs from how the task, or the experiment, is opened."""
    usual = usual_choice(choice.train_task, choice.train_experiment)
    named = choice.train_task if choice.train_experiment != NO_EXPERIMENT else OPENING.train_task
    return write_part(choice, replace(usual, train_task=named, train_experiment=OPENING.train_experiment))
