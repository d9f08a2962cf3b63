"""The way of a path through a run: the stops that it has, the place of each, and what is lit there."""

from __future__ import annotations

import math
from dataclasses import replace

from visualizer.guide.known_paths import chosen_path
from visualizer.guide.path import GuidedPath, Stop
from visualizer.guide.path_facts import facts_at
from visualizer.guide.words import PathFacts, holds
from visualizer.pictures.token_way import stack_of
from visualizer.runs.paths import attention_modules, layer_of, with_layer, without_layer
from visualizer.runs.run import Run
from visualizer.settings.settings import Selection, default_stage
from visualizer.shares import percent
from visualizer.stages.head_measures import HeadMeasures, has_tokens, measure_heads
from visualizer.stages.informative import cell_at
from visualizer.state import drafts, state
from visualizer.work.cache import cached_run

_TOKEN = "token_of_target"
_PLACES = ("guided", "hidden", "stop", "view", "stage", "layer", "head", "query", "key", "cell")
"""The fields of the selection that a stop sets."""


def stage_in(run: Run, stop: Stop) -> str | None:
    """The path of the stage of a stop, of the decoder where there is one; None where the run has no such stage."""
    if not stop.stage:
        return with_layer(run.trace, default_stage(run.settings.architecture), stop.layer)
    found = [path for path in run.trace if f".{without_layer(path)}".endswith(f".{stop.stage}")]
    if not found and stop.stage.startswith("self_attention."):  # of an attention that is traced alone
        name = stop.stage.rpartition(".")[2]
        found = [path for path in run.trace if path in (name, f"attention.{name}")]
    of_decoder = [path for path in found if not path.startswith("encoder.")] or found
    in_layer = [path for path in of_decoder if layer_of(path) == stop.layer] or of_decoder[-1:]
    return in_layer[0] if in_layer else None


def has_stop(run: Run, stop: Stop, selection: Selection) -> bool:
    """True if a run has what a stop is about."""
    path = stage_in(run, stop)
    if path is None or (stop.view == "way" and stack_of(run, path) is None):
        return False
    if stop.view == "heads" and not attention_modules(run.trace):
        return False
    if stop.measure and not by_measure(run, path, stop.measure):
        return False
    return not stop.condition or holds(stop.condition, facts_at(run, path, selection))


def stops_of(run: Run, path: GuidedPath, selection: Selection) -> tuple[int, ...]:
    """The numbers, from 1, of the stops that a run has."""
    return tuple(i for i, stop in enumerate(path.stops, start=1) if has_stop(run, stop, selection))


def by_measure(run: Run, path: str, measure: str) -> list[HeadMeasures]:
    """The heads of all layers of the attention that a stage is of, that with the most of a measure first."""
    kind = without_layer(path)
    of_kind = [
        module
        for module in attention_modules(run.trace)
        if kind.startswith(f"{without_layer(module)}.") and has_tokens(run, module)
    ]
    found = [head for head in measure_heads(run, of_kind) if not math.isnan(head.values[measure])]
    return sorted(found, key=lambda head: head.values[measure], reverse=True)


def nearest_stop(numbers: tuple[int, ...], number: int) -> int:
    """The last stop up to ``number`` that the run has, or its first."""
    return max((one for one in numbers if one <= number), default=numbers[0])


def facts_of_stop(run: Run, stop: Stop, selection: Selection) -> PathFacts:
    """Return the facts at a stop for the current selection."""
    path = stage_in(run, stop) or next(iter(run.trace))
    if stop.view == "heads":  # whose picture goes to any layer
        path = with_layer(run.trace, without_layer(path), selection.layer)
    facts = facts_at(run, path, selection, on_its_way=stop.view == "way")
    heads = by_measure(run, path, stop.measure) if stop.measure else []
    here = next((head for head in heads if (head.layer, head.head) == (selection.layer, selection.head)), None)
    if here is None:
        return facts
    holding = facts.holding | {"foremost" if here is heads[0] else "another_head"}
    return PathFacts(holding, {**facts.values, stop.measure: percent(here.values[stop.measure])})


def is_at(run: Run, stop: Stop, selection: Selection) -> bool:
    """True if what is looked at is what a stop shows."""
    if selection.view != stop.view:
        return False
    return stop.view != "step" or with_layer(run.trace, selection.stage, selection.layer) == stage_in(run, stop)


def place_of(run: Run, stop: Stop, number: int, selection: Selection) -> Selection:
    """The selection that a stop begins with: its own places, and for the rest what was looked at."""
    path = stage_in(run, stop) or next(iter(run.trace))
    head = by_measure(run, path, stop.measure)[0] if stop.measure else None
    found = replace(
        selection,
        guided=True,
        hidden=False,
        stop=number,
        view=stop.view,
        stage=without_layer(path),
        layer=layer_of(path) if head is None else head.layer,
        head=(selection.head if stop.head is None else stop.head) if head is None else head.head,
        query=selection.query if stop.query is None else stop.query,
        key=Selection().key if stop.key is None else stop.key,
        cell=stop.key is not None,
    )
    if stop.view == "heads" and stop.key is None:  # its picture shows the column that is chosen, whichever it is
        found = replace(found, key=cell_at(run, with_layer(run.trace, found.stage, found.layer), found).column)
    return run.nearest(found)


def go_to(number: int) -> None:
    """Go to a stop of the path that is open, or to the nearest one that the run has, as a callback does."""
    choices = state.chosen()
    path = chosen_path(choices.selection)
    if path is None:
        return
    try:
        run = cached_run(choices.settings)
    except ValueError:
        return  # the page says what is wrong with the settings
    numbers = stops_of(run, path, choices.selection)
    if numbers:
        number = nearest_stop(numbers, number)
        stop = path.stops[number - 1]
        found = place_of(run, stop, number, _with_token_of(choices.selection, run, stop))
        state.select(**{name: getattr(found, name) for name in _PLACES})


def _with_token_of(selection: Selection, run: Run, stop: Stop) -> Selection:
    """The selection with the token of the text that a stop is about: a visit to the encoder leaves the target's."""
    if run.settings.architecture != "encoder-decoder":
        return selection
    was_visiting, is_visiting = (stage.startswith("encoder.") for stage in (selection.stage, stop.stage))
    if is_visiting and not was_visiting:
        drafts.put_by(_TOKEN, selection.query)
    elif was_visiting and not is_visiting:
        left = drafts.put_by_before(_TOKEN)
        drafts.put_by(_TOKEN, None)
        return replace(selection, query=left) if isinstance(left, int) else selection
    return selection


def light_at(run: Run, selection: Selection) -> str:
    """The light in the picture; empty outside of a path, and where something else is looked at than its stop."""
    path = chosen_path(selection)
    if not selection.guided or selection.hidden or path is None or not 1 <= selection.stop <= len(path.stops):
        return ""
    stop = path.stops[selection.stop - 1]
    return stop.light if is_at(run, stop, selection) else ""
