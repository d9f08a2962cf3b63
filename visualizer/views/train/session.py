"""The training of this session, and what there is to see of any plan."""

from __future__ import annotations

from dataclasses import dataclass, replace

from visualizer.settings.training_settings import TrainingChoice
from visualizer.state import drafts, state
from visualizer.state.visitors import name_of_session
from visualizer.views.train.job import Trainings
from visualizer.views.train.known_trainings import KNOWN_TRAININGS, recorded_state, untrained_state
from visualizer.views.train.plan import Plan
from visualizer.work.jobs import Job, Seen

_KEY = "training"


@dataclass(frozen=True, eq=False)
class Mine:
    """The training that was started last in this session.

    Attributes:
        choice: what was chosen then, to come back to it.
        plan: what is trained.
        job: the job, which others may share.
        left: what it had come to when this session stopped it; None as long as it has not.
    """

    choice: TrainingChoice
    plan: Plan
    job: Job[Trainings]
    left: Seen[Trainings] | None = None


def start(choice: TrainingChoice, plan: Plan) -> None:
    """Train a plan, in place of what this session has been training.

    Raises:
        ValueError: too much is being trained already.
    """
    before = _mine()
    if before is not None and before.plan.recipes != plan.recipes:
        before.job.leave(name_of_session())
    _is_mine(choice, plan, KNOWN_TRAININGS.start(plan.recipes))


def stop(choice: TrainingChoice, plan: Plan) -> None:
    """End the training of a plan for this session; it goes on where somebody else looks at it."""
    job = KNOWN_TRAININGS.running(plan.recipes)
    if job is not None:
        left = job.leave(name_of_session())
        _is_mine(choice, plan, job, replace(left, phase="stopped") if left.is_running else left)


def running(choice: TrainingChoice, plan: Plan) -> Job[Trainings] | None:
    """Return the job that trains a plan now; None also where this session stopped it, or the link is not of it."""
    mine = _mine()
    is_mine = mine is not None and mine.plan.recipes == plan.recipes
    if not is_started(choice, plan) or (mine is not None and is_mine and mine.left is not None):
        return None
    job = KNOWN_TRAININGS.running(plan.recipes)
    if job is not None and (mine is None or not (is_mine or mine.job.peek().is_running)):  # as after a reload
        drafts.put_by(_KEY, Mine(choice, plan, job))
    return job


def found(choice: TrainingChoice, plan: Plan) -> Seen[Trainings]:
    """Return what there is to see of a plan that is not running.

    Where the link is of it, the first of: what failed in this session, what was trained to its end last, what this
    session stopped or what was interrupted. Else what is recorded, whatever others train meanwhile. Where there is
    none of these: what was trained all the same, and the random weights that a training would begin with.
    """
    trained = KNOWN_TRAININGS.finished(plan.recipes)
    interrupted = KNOWN_TRAININGS.interrupted(plan.recipes)
    if is_started(choice, plan):
        mine = _mine()
        left = None
        if mine is not None and mine.plan.recipes == plan.recipes:
            left = mine.left or mine.job.peek()
            if mine.left is None and left.phase != "finished":
                return left
        if known := trained or left or interrupted:
            return known
    return recorded_state(plan.recipes) or trained or interrupted or untrained_state(plan.recipes)


def elsewhere(choice: TrainingChoice, plan: Plan) -> Mine | None:
    """Return what this session is training while the link is not of it; to ask keeps it going."""
    mine = _mine()
    if mine is None or mine.left is not None or (mine.plan.recipes == plan.recipes and is_started(choice, plan)):
        return None
    return mine if mine.job.look(name_of_session()).is_running else None


def is_started(choice: TrainingChoice, plan: Plan) -> bool:
    """True if the link is of a training of this plan that was started, and not merely of the plan."""
    return choice.train_started == plan.name


def _is_mine(choice: TrainingChoice, plan: Plan, job: Job[Trainings], left: Seen[Trainings] | None = None) -> None:
    """Note what this session trains, also in the link: a reload makes another session."""
    drafts.put_by(_KEY, Mine(replace(choice, train_started=plan.name), plan, job, left))
    state.train(replace(state.chosen().training, train_started=plan.name))


def _mine() -> Mine | None:
    mine = drafts.put_by_before(_KEY)
    return mine if isinstance(mine, Mine) else None
