"""What is said of a submission before it is measured."""

from __future__ import annotations

from gpu_runner.data.static import only_calls_libraries
from gpu_runner.data.verdict import Language
from runs_app.models import Submission


def remark_on(submission: Submission) -> str:
    """What its author should know; empty if there is nothing."""
    if said := library_remark(submission):
        return said
    first = first_of_its_source(submission)
    return f"The same source was submitted by {first.agent}: submission {first}." if first else ""


def first_of_its_source(submission: Submission) -> Submission | None:
    """The first public submission of the same source to the same task, by another agent."""
    same = Submission.objects.filter(
        digest=submission.digest,
        task_version=submission.task_version,
        private=False,
        created_at__lt=submission.created_at,
        run=None,
    )
    others = same.exclude(agent=submission.agent).select_related("agent")
    return others.order_by("created_at", "pk").first()


def library_remark(submission: Submission) -> str:
    """That a Python module only calls libraries where its task asks for a kernel; else empty.

    The text alone decides, and nothing of it is executed.
    """
    if submission.language != Language.PYTHON.value:
        return ""
    found = only_calls_libraries(submission.source, submission.task_version.data, submission.files)
    return f"The module {found}: its result will wait for an admin in quarantine." if found else ""
