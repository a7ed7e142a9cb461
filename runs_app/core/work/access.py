"""Who may see which submissions, evaluations and results."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import Http404

from gpu_runner.data.evaluation import EvaluationResult
from gpu_runner.data.verdict import Mode, Verdict
from runs_app.models import Agent, Evaluation, LanguageModel, Result, Status, Submission
from tasks_app.disclosure import public_result, public_text, sees_hidden
from tasks_app.people import Viewer


def may_see(user: Viewer, submission: Submission) -> bool:
    """Whether the submission exists for `user`: a private one is its author's and the admins'."""
    return not submission.private or sees_hidden(user) or submission.author_id == user.pk


def visible_submissions(user: Viewer) -> QuerySet[Submission]:
    """The submissions that `user` may see, with what lists show of them."""
    rows = Submission.objects.select_related(
        "author", "task_version__task", "agent", "language_model"
    )
    return rows if sees_hidden(user) else rows.filter(_visible(user))


def listed_evaluations(user: Viewer) -> QuerySet[Evaluation]:
    """The visible evaluations of what somebody entered.

    Candidates are on their run's page, and dry runs of what was never public on their draft's.
    """
    return (
        visible_evaluations(user)
        .filter(submission__run=None)
        .exclude(
            submission__origin=Submission.Origin.DRY_RUN, task_version__published_at__isnull=True
        )
    )


def visible_evaluations(user: Viewer) -> QuerySet[Evaluation]:
    """The evaluations that `user` may see, with what lists show of them."""
    rows = Evaluation.objects.select_related(
        "device",
        "runner",
        "quarantine_case",
        "submission__author",
        "submission__agent",
        "submission__language_model",
        "task_version__task",
    )
    return rows if sees_hidden(user) else rows.filter(_visible(user, "submission__"))


def asked_for(rows: QuerySet[Evaluation]) -> QuerySet[Evaluation]:
    """Without audits, which nobody asks for; newest first."""
    return rows.exclude(mode=Mode.AUDIT.value).order_by("-created_at", "-pk")


def standing_of(newest_first: Iterable[Evaluation]) -> Evaluation | None:
    """The evaluation that stands for its submission, on its page as on boards.

    It is the latest ranked one that ended, unless by our fault; without one it is the newest, or
    the newest that wasn't canceled.
    """
    known = [each for each in newest_first if each.mode != Mode.AUDIT]
    known.sort(key=lambda each: each.status == Status.CANCELLED)
    return next((each for each in known if _ranks(each)), next(iter(known), None))


def _ranks(evaluation: Evaluation) -> bool:
    """As `work.replaced.later` has it."""
    is_ended = evaluation.mode == Mode.RANKED and evaluation.status == Status.FINISHED
    return is_ended and evaluation.verdict != Verdict.SYSTEM_ERROR


def find_submission(submission_id: UUID | str, user: Viewer) -> Submission | None:
    """The submission, or None if there is none that `user` may see."""
    try:
        return visible_submissions(user).filter(pk=submission_id).first()
    except ValidationError:  # it is no id
        return None


def get_submission(submission_id: UUID | str, user: Viewer) -> Submission:
    """The same; raises `Http404` if there is none."""
    if (submission := find_submission(submission_id, user)) is None:
        raise Http404("There is no such submission, or it is private.")
    return submission


def find_evaluation(evaluation_id: UUID | str, user: Viewer) -> Evaluation | None:
    """The evaluation, or None if there is none that `user` may see."""
    return visible_evaluations(user).filter(pk=evaluation_id).first()


def shown_result(evaluation: Evaluation, user: Viewer) -> EvaluationResult | None:
    """The result as `user` may see it; None before there is one."""
    return shown_results([evaluation], user).get(evaluation.pk)


def shown_results(
    evaluations: Collection[Evaluation], user: Viewer
) -> dict[UUID, EvaluationResult]:
    """By evaluation the same of many; those without a result are left out."""
    hidden = {each.pk: each.task_version.hidden_names for each in evaluations}
    found = {row.pk: row.data for row in Result.objects.filter(pk__in=hidden)}
    if sees_hidden(user):
        return found
    return {key: public_result(result, hidden[key]) for key, result in found.items()}


def public_reason(evaluation: Evaluation, user: Viewer) -> str:
    """The reason of the verdict, or of the latest retry, as `user` may see it."""
    if sees_hidden(user):
        return evaluation.reason
    return public_text(evaluation.reason, evaluation.task_version.hidden_names)


def author_names(user: Viewer) -> tuple[list[str], list[str]]:
    """Names under which `user` may enter kernels: own agents, and language models seen here."""
    seen = Submission.objects.filter(_visible(user), run=None).order_by()
    agents = Agent.objects.filter(owner_id=user.pk) if user.pk is not None else Agent.objects.none()
    # one look for each name: a join would read every submission of the site
    models = LanguageModel.objects.filter(Exists(seen.filter(language_model=OuterRef("pk"))))
    return (
        list(agents.order_by("name").values_list("name", flat=True)),
        list(models.values_list("name", flat=True)),
    )


def _visible(user: Viewer, prefix: str = "") -> Q:
    public = Q(**{f"{prefix}private": False})
    return public | Q(**{f"{prefix}author_id": user.pk}) if user.pk is not None else public
