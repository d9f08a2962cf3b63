"""The choices of the person, between one run of the script and the next.

The only place that writes ``st.query_params``. The address bar, the widgets and the components can each bring a
change; the newest thing the person did wins:

- a control or a component changed: that change is taken, and the address bar follows;
- a person went Back or Forward: the address is read again. Streamlit says so, but forgets it where a control speaks
  at the same moment; therefore the page says it as well.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal
from urllib.parse import parse_qs

import streamlit as st

from model.config import Architecture
from visualizer.components.events import whole_number_in
from visualizer.settings import examples
from visualizer.settings.fields import MAX_TOKENS, PRETRAINED, by_any_name, changed, fields_of, value_in
from visualizer.settings.fitting import EXAMPLE_TEXT, fitted, usual_mask, width_to_come_back_to
from visualizer.settings.link import read_query, write_query
from visualizer.settings.settings import FIELDS, Selection, Settings, default_stage, in_mask_order
from visualizer.settings.sources import TOOLS_OF_CHECKPOINT, SourceName, renewed, view_in
from visualizer.settings.trained_models import TRAINED_MODELS
from visualizer.settings.training_settings import (
    OPENING,
    TRAINING,
    TrainingChoice,
    fitted_training,
    read_training,
    write_training,
)
from visualizer.settings.watched_settings import (
    NOTHING_WATCHED,
    WATCHED,
    WatchedChoice,
    read_watched,
    write_watched,
)
from visualizer.state import widget_values
from visualizer.state.recording_argument import recording_argument
from visualizer.state.streamlit_internals import has_gone_back, is_lost_file

_logger = logging.getLogger(__name__)
_CHOICES = "_choices"
_SENT = "_sent_address"
_OPENED = "_examples_opened"
_FAILURE = "_failure"
_LAST_SETTINGS = "_last_settings"
_PARTS = ("settings", "selection", "training", "watched")
_PART_OF = {
    field: name
    for name, part in zip(_PARTS, (Settings, Selection, TrainingChoice, WatchedChoice), strict=True)
    for field in fields_of(part)
}
_PARAMETERS = by_any_name((*FIELDS.values(), *TRAINING.values(), *WATCHED.values()))


@dataclass(frozen=True)
class Choices:
    """Everything chosen.

    Attributes:
        settings: what is run.
        selection: what is looked at.
        notices: one sentence for each value of the link that had to be changed.
        named: the parameters of the link, when it has just been read.
        training: what is trained, and looked at there.
        watched: which trace of another model is open, and what is looked at in it.
        says_query: whether the link names the usual query too: padding that was chosen would else be left.
    """

    settings: Settings
    selection: Selection
    notices: tuple[str, ...] = ()
    named: frozenset[str] = frozenset()
    training: TrainingChoice = OPENING
    watched: WatchedChoice = NOTHING_WATCHED
    says_query: bool = False

    @cached_property
    def link(self) -> dict[str, str]:
        """The parameters of the link, of which there is always one: an address without any opens ``FIRST``."""
        own_model = write_query(self.settings, self.selection)
        if self.says_query:
            own_model["query"] = str(self.selection.query)
        query = own_model | write_training(self.training) | write_watched(self.watched)
        return query or {"view": self.selection.view}

    @property
    def masks(self) -> frozenset[str]:
        """The masks of what is looked at: of the run, or of either of two that are compared."""
        return self.selection.compare.masks if self.selection.compares_masks else frozenset(self.settings.mask)

    @property
    def width(self) -> int:
        """The width asked for, to which the model returns as soon as the heads can share it."""
        return self.selection.asked_width or self.settings.d_model


def read(link: Mapping[str, Sequence[str]]) -> Choices:
    """Read the choices of a link from its parameters, each with all its values."""
    here = renewed(link)
    settings, selection, notices = read_query(here)
    training, of_training = read_training(here)
    watched, of_watched = read_watched(here)
    notices = (*notices, *of_training, *of_watched)
    named = frozenset({*link, *({"stage"} & here.keys())})  # an older link has another name for it
    return Choices(settings, selection, notices, named, training, watched)


FIRST = Choices(examples.OPENING.settings, examples.OPENING.selection)
"""The choices of an address without parameters. What a link leaves out is as in ``Settings()`` all the same."""


def load() -> Choices:
    """Load the current choices. Call it before the first control is drawn."""
    before: Choices | None = st.session_state.get(_CHOICES)
    is_back = has_gone_back()
    choices = _from_address() if before is None or is_back else _with_controls(before)
    if is_back:
        widget_values.forget_drafts()
    save(choices)
    return choices


def save(choices: Choices) -> None:
    """Remember what is shown, in place of what the page says until now.

    A page that was behind may still have offered what does not fit: the source is that of the weights, and a view
    that it does not have is its heads.
    """
    widget_values.chosen_in(_PART_OF)
    selection = choices.selection
    kind = _kind_of(choices.settings)
    st.session_state[_LAST_SETTINGS] = {**st.session_state.get(_LAST_SETTINGS, {}), kind: choices.settings}
    source = selection.source if selection.source == "recording" else kind
    fitting = replace(selection, source=source, view=view_in(source, selection.view))
    st.session_state[_CHOICES] = choices if fitting == selection else replace(choices, selection=fitting)


def show_link() -> None:
    """Make the address bar the link of what is shown.

    A browser that went Back meanwhile gets what was sent before only then, so it is told again.
    """
    address = st.query_params.to_dict()
    link = address if _says(address, chosen()) else chosen().link
    if link != address or st.session_state.get(_SENT, link) != link:
        st.query_params.from_dict(link)
        st.session_state[_SENT] = link


def go_to(event: object) -> None:
    """Show what the address says, as a callback does: a person went Back or Forward to it.

    It may have been seen late, beside what was "drawn": then whatever was chosen meanwhile counts.
    """
    search, addresses = (event.get("search"), event.get("drawn")) if isinstance(event, Mapping) else (None, None)
    if isinstance(search, str) and (not isinstance(addresses, list) or chosen().link in addresses):
        widget_values.forget_drafts()
        said = parse_qs(search.removeprefix("?"), keep_blank_values=True)
        show(_of(said))
        if addresses and not _says({name: values[0] for name, values in said.items()}, chosen()):
            st.session_state[_SENT] = None  # Streamlit believes that the address bar says what it was told


def show(found: Choices) -> None:
    """Show what a link or a file says, as a callback does."""
    if any(getattr(found, part) != getattr(chosen(), part) for part in _PARTS):
        save(found)


def chosen() -> Choices:
    """Return the current choices, after ``load``."""
    choices: Choices = st.session_state[_CHOICES]
    return choices


def now() -> Choices:
    """Return the choices as a callback finds them: a control may have changed at the same moment."""
    save(_with_controls(chosen()))
    return chosen()


def value_of(name: str) -> Any:  # noqa: ANN401 - whatever the field holds
    """Return the value of a field, which its control shows."""
    return value_in(getattr(chosen(), _PART_OF[name]), name)


def choose(settings: Settings, selection: Selection) -> None:
    """Replace everything that is chosen of our own model, as a callback does."""
    st.session_state[_OPENED] = examples_opened() + 1
    save(_with(chosen(), settings=settings, selection=selection))


def examples_opened() -> int:
    """Return the number of times that everything was replaced, as by an example: it tells one from the next."""
    opened: int = st.session_state.get(_OPENED, 0)
    return opened


def select(**changes: Any) -> None:  # noqa: ANN401 - the fields of Selection, checked by `changed`
    """Change what is looked at, as a callback does."""
    before = now()
    save(_with(before, selection=changed(before.selection, **changes)))


def show_head(layer: int, head: int) -> None:
    """Look at a head, as a callback does: a hidden one is shown as well, or alone in place of the one that was."""
    shown = chosen().selection.heads.shown
    if shown and head not in shown:
        shown = (head,) if len(shown) == 1 else tuple(sorted((*shown, head)))
    select(layer=layer, head=head, shown=shown)


def select_cell(query: int, key: int) -> None:
    """Look at one cell, as a callback does. That the usual key was chosen is noted: else none would be."""
    select(query=query, key=key, cell=key == Selection().key)


def train(choice: TrainingChoice) -> None:
    """Replace what is trained and looked at there, as a callback does."""
    save(_with(chosen(), training=fitted_training(choice)))


def watch(**changes: Any) -> None:  # noqa: ANN401 - the fields of WatchedChoice, checked by `replace`
    """Change which trace is open or what is looked at in it, as a callback does."""
    before = now()
    save(_with(before, watched=replace(before.watched, **changes)))


def open_watched(**changes: Any) -> None:  # noqa: ANN401
    """Open another trace, as a callback does: what was looked at in the one before is forgotten."""
    before = now()
    selection = replace(before.selection, stage=default_stage(before.settings.architecture))
    save(_with(before, selection=selection, watched=replace(NOTHING_WATCHED, **changes)))


def open_checkpoint(name: str, **changes: Any) -> None:  # noqa: ANN401 - the fields of Settings
    """Open another checkpoint, as a callback does: its masks are its own, and nothing in it is edited."""
    open_watched()
    of_other = {"weights": PRETRAINED, "edits": "", "custom": "", **changes}
    settings = replace(chosen().settings, pretrained_model=name, **of_other)
    change(**vars(replace(settings, mask=usual_mask(settings))))
    select(head=0, query=MAX_TOKENS - 1, key=0)  # the last token, which has seen the others


def show_source(source: SourceName) -> None:
    """Show a model of another source, in the view that is open where it has that, as a callback does.

    A checkpoint and what is built here have settings of their own, and find them again.
    """
    before = now()
    kind = "pretrained" if source == "pretrained" else "built"
    settings = st.session_state[_LAST_SETTINGS].get(kind) or _other_settings(before.settings)
    stage = default_stage(settings.architecture)
    selection = replace(before.selection, source=source, stage=stage, asked_width=0)
    watched = replace(before.watched, watched_first_query=0, watched_first_key=0)
    save(_with(before, settings=settings, selection=selection, watched=watched))


def _kind_of(settings: Settings) -> Literal["pretrained", "built"]:
    return "pretrained" if settings.weights == PRETRAINED else "built"


def _other_settings(settings: Settings) -> Settings:
    """The first settings of a checkpoint beside a model that is built here, or the other way round."""
    if settings.weights == PRETRAINED:
        return Settings()
    texts = {FIRST.settings.text, Settings().text, *(trained.example for trained in TRAINED_MODELS.values())}
    text = EXAMPLE_TEXT if settings.text in texts else settings.text
    return fitted(replace(Settings(), weights=PRETRAINED, text=text, target="", mask=()))


def fit_to_checkpoint(architecture: Architecture) -> Choices:
    """Take over the architecture of the checkpoint that is open, and a tool that its mask has."""
    before = chosen()
    if before.selection.lab.panel not in TOOLS_OF_CHECKPOINT:
        save(replace(before, selection=changed(before.selection, panel=TOOLS_OF_CHECKPOINT[0])))
        before = chosen()
    if before.settings.architecture != architecture:
        stage = before.selection.stage if "stage" in before.named else default_stage(architecture)
        looked_at = replace(before, selection=replace(before.selection, stage=stage))
        save(replace(with_changes(looked_at, architecture=architecture), named=before.named))
    return chosen()


def change(**changes: Any) -> None:  # noqa: ANN401 - the fields of Settings, checked by `replace`
    """Change the settings, as a callback does."""
    save(with_changes(now(), **changes))


def with_changes(before: Choices, **changes: Any) -> Choices:  # noqa: ANN401 - the fields of Settings
    """The choices with other settings, and with the nearest that fit them."""
    settings = replace(before.settings, **{"d_model": before.width, **changes})
    if settings.weights == PRETRAINED and settings.mask == before.settings.mask == usual_mask(before.settings):
        settings = replace(settings, mask=usual_mask(settings))  # its own masks stay its own
    return _with_fitted(before, settings, before.selection)


def change_masks(settings: Settings) -> None:
    """Take over the masks of ``settings`` and nothing else, as a callback does."""
    names = ("mask", "custom", "custom_encoder", "custom_cross", "encoder_padding", "cross_padding")
    change(**{name: getattr(settings, name) for name in names})


def callback(act: Callable[..., object], *arguments: object, **named: object) -> Callable[[], None]:
    """Return the callback for an act of a person: the page is drawn also where the act fails."""

    def carry_out() -> None:
        with logged_failure():
            act(*arguments, **named)

    return carry_out


@contextmanager
def logged_failure() -> Iterator[None]:
    """Log what fails within, under a code, and go on: Streamlit would show it in place of the page."""
    try:
        yield
    except Exception:
        st.session_state[_FAILURE] = code = secrets.token_hex(3)
        _logger.exception("Something failed, code %s", code)


def failure() -> str:
    """The code in the log of what failed since the page was last drawn; "" for nothing."""
    return str(st.session_state.pop(_FAILURE, ""))


def on_event(key: str, name: str, handle: Callable[[object], None]) -> Callable[[], None]:
    """A callback that hands ``handle`` what the component ``key`` sent as ``name``, and remembers its number.

    A component that has left the page meanwhile has no event any more.
    """

    def take() -> None:
        if (event := st.session_state.get(key, {}).get(name)) is not None:
            st.session_state[_seq_key(key)] = index_in(event, "seq")
            handle(event)

    return callback(take)


def on_change(name: str, handle: Callable[[Any], None]) -> Callable[[], None]:
    """A callback that hands ``handle`` the new value of a control, unless the control has left the page."""

    def take() -> None:
        for value in _new_values(name):
            handle(value)

    return callback(take)


def _new_values(name: str) -> Collection[object]:
    """The value that a person gave a control; none where nobody did. That of a field is left for ``load``.

    A page that has not heard of another value yet still says the one before, which nobody chose. A file that the
    server lost is no new value either: nobody took it away.
    """
    if name not in _PART_OF and widget_values.is_given(name):
        return widget_values.chosen_in([name]).values()
    values = [st.session_state[key] for key in widget_values.keys_on_page(name)[-1:]]
    return [value for value in values if not is_lost_file(value)]


def last_seq(key: str) -> int:
    """The number of the last event that the component ``key`` sent in this session; 0 before the first."""
    number: int = st.session_state.get(_seq_key(key), 0)
    return number


def index_in(event: object, name: str) -> int:
    """A non-negative whole number from an event; 0 for anything else, since a browser can send anything."""
    return whole_number_in(event, name) or 0


def _seq_key(key: str) -> str:
    return f"_{key}_seq"


def _from_address() -> Choices:
    return _of({name: st.query_params.get_all(name) for name in st.query_params})


def _of(link: Mapping[str, Sequence[str]]) -> Choices:
    """The choices of a link, which may have no parameters."""
    return _first() if _chooses_nothing(link) else read(link)


def _first() -> Choices:
    """The choices of an address without parameters: the recording the app was started with, or the opening."""
    if recording_argument() is None:
        return FIRST
    watched = replace(NOTHING_WATCHED, watched_source="given")
    return Choices(Settings(), Selection(source="recording", view="heads"), watched=watched)


def _with(before: Choices, **changes: Any) -> Choices:  # noqa: ANN401 - the parts of Choices
    """The choices with other parts, and without what was said of the link."""
    return replace(before, **changes, notices=(), named=frozenset())


def _with_fitted(before: Choices, settings: Settings, selection: Selection) -> Choices:
    """The choices nearest to settings that may not fit together."""
    selection = replace(selection, asked_width=width_to_come_back_to(settings))
    return _with(before, settings=fitted(settings), selection=selection)


def _says(link: Mapping[str, str], choices: Choices) -> bool:
    """True if a link says this. The first visit leaves it without parameters, so that Back leaves the page."""
    is_first = all(getattr(choices, part) == getattr(FIRST, part) for part in _PARTS)
    return link == choices.link or (is_first and _chooses_nothing(link))


def _chooses_nothing(link: Iterable[str]) -> bool:
    """True if none of the parameters is one of ours."""
    return _PARAMETERS.keys().isdisjoint(link)


def _with_controls(before: Choices) -> Choices:
    """The choices with what a person chose in controls since they were last read."""
    changes: dict[str, dict[str, Any]] = {part: {} for part in _PARTS}
    for name, value in widget_values.chosen_in(_PART_OF).items():
        if value is not None:  # a pressed choice that is pressed again: it stays
            changes[_PART_OF[name]][name] = value
    if not any(changes.values()):
        return before
    choices = with_changes(before, **changes["settings"])
    return replace(
        choices,
        selection=_in_order(changed(choices.selection, **changes["selection"])),
        training=fitted_training(replace(before.training, **changes["training"])),
        watched=replace(before.watched, **changes["watched"]),
    )


def _in_order(selection: Selection) -> Selection:
    """Equal choices of masks are equal values, in whatever order they were clicked."""
    compared = selection.compare
    return changed(selection, mask_a=in_mask_order(compared.mask_a), mask_b=in_mask_order(compared.mask_b))
