"""What is said of a submission before it is measured."""

from __future__ import annotations

from gpu_runner.data.static import only_calls_libraries
from gpu_runner.data.verdict import Language
from runs_app.models import Submission


def library_remark(submission: Submission) -> str:
    """That a Python module only calls libraries where its task asks for a kernel; else empty.

    The text alone decides, and nothing of it is executed.
    """
    if submission.language != Language.PYTHON.value:
        return ""
    found = only_calls_libraries(submission.source, submission.task_version.data)
    return f"The module {found}: its result will wait for an admin in quarantine." if found else ""
