"""What the page of a submission shows around one of its evaluations."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import reverse

from gpu_runner.data.verdict import Mode
from runs_app.core.queue.devices import devices
from runs_app.core.work.access import shown_result
from runs_app.models import Evaluation, Submission
from runs_app.submitting import citation
from runs_app.submitting.live import Live
from runs_app.submitting.remarks import first_of_its_source, likeness
from tasks_app.models import Draft, TaskVersion
from tasks_app.people import Viewer
from tasks_app.selectors import find_task, shown_version


@dataclass(frozen=True, kw_only=True)
class Share:
    """What somebody needs who points others to a result."""

    address: str
    line: str
    bibtex: str
    markdown: str
    card: str


@dataclass(frozen=True, kw_only=True)
class SubmissionPage:
    """A submission, the evaluation that is looked at, and the way to its task.

    `run_device` is a device where a run can start from the kernel; empty if this site has none.
    `draft` is the one in which a version that was never public is written, if one may open it.
    """

    submission: Submission
    evaluations: list[Evaluation]
    live: Live
    share: Share
    first_of_its_source: Submission | None
    likeness: str
    task_has_page: bool
    task_is_open: bool
    run_device: str
    draft: Draft | None

    @property
    def may_export(self) -> bool:
        """Whether `kbench export` takes it."""
        return self.live.evaluation.mode == Mode.RANKED and self.live.evaluation.is_correct


def submission_page(
    request: HttpRequest,
    submission: Submission,
    evaluations: list[Evaluation],
    live: Live,
    standing: Evaluation,
) -> SubmissionPage:
    """The page with `live`, one of the submission's evaluations; `standing` stands for it."""
    version, user = submission.task_version, request.user
    return SubmissionPage(
        submission=submission,
        evaluations=evaluations,
        live=live,
        share=_share(request, live, standing),
        first_of_its_source=first_of_its_source(submission),
        likeness=likeness(submission),
        task_has_page=shown_version(version.task.slug, user) is not None,
        task_is_open=find_task(version.task.slug, user) is not None,
        run_device=_run_device(live.evaluation),
        draft=_draft(version, user),
    )


def _run_device(evaluation: Evaluation) -> str:
    """The device it was measured on if runs there write its language, else the first that does."""
    language = evaluation.submission.language
    own = [device.slug for device in devices() if device.language == language]
    return evaluation.device_id if evaluation.device_id in own else next(iter(own), "")


def _draft(version: TaskVersion, user: Viewer) -> Draft | None:
    drafts = version.drafts.defer("files") if version.published_at is None else ()
    return next((draft for draft in drafts if draft.open_to(user)), None)


def _share(request: HttpRequest, live: Live, standing: Evaluation) -> Share:
    """A ranked evaluation is cited as it is shown; else the one that stands for the submission."""
    evaluation, result = live.evaluation, live.result
    if evaluation.pk != standing.pk and evaluation.mode != Mode.RANKED:
        evaluation, result = standing, shown_result(standing, request.user)
    page = request.build_absolute_uri(evaluation.submission.get_absolute_url())
    address = f"{page}?evaluation={evaluation.pk}"
    picture = reverse("submission-badge", args=[evaluation.submission_id])
    line = citation.in_a_line(evaluation)
    return Share(
        address=address,
        line=line,
        bibtex=citation.bibtex(evaluation, result, address),
        markdown=f"[![{citation.in_a_line(standing)}]({request.build_absolute_uri(picture)})]({page})",
        card=request.build_absolute_uri(
            f"{reverse('submission-card', args=[evaluation.submission_id])}"
            f"?evaluation={evaluation.pk}"
        ),
    )
