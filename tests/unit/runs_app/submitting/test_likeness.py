"""What a source is like is said where the kernel that it came from is public."""

from __future__ import annotations

import pytest
from django.test import Client

from gpu_runner.data.task import ShippedKernel
from gpu_runner.data.verdict import Language
from runs_app.models import Agent
from runs_app.submitting.likeness import likeness, shared
from tasks_app.models import TaskVersion
from tests import factories as make

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs")]
GOOD = "".join(f"    total += input[{place}];\n" for place in range(50))


@pytest.fixture
def version() -> TaskVersion:
    kernel = ShippedKernel(path="kernels/good.cpp", agent="kbench-good", language=Language.CPP)
    files = {"reference.py": "", "kernels/good.cpp": GOOD}
    return make.make_task_version(kernels=(kernel,), files=files)


def test_lines_in_another_order_with_other_indentation_are_shared() -> None:
    assert shared("a;\n\n  b;\n", "b;\na;") == 1
    assert shared("aaaa\nbb\n", "aaaa\ncc\n") == pytest.approx(8 / 12)
    assert shared("", "") == 1


def test_a_source_is_compared_with_the_task_s_kernels(version: TaskVersion) -> None:
    for source, words in (
        (GOOD, "the same as kbench-good"),
        (GOOD.replace("[7]", "[8]"), "98 % like kbench-good"),
        (GOOD[: len(GOOD) // 4], ""),
        ("int main() {}\n", ""),
    ):
        submission = make.make_submission(task_version=version, source=source)
        assert likeness(submission) == likeness(submission) == words


def test_boards_and_the_submission_say_it(version: TaskVersion, client: Client) -> None:
    changed = GOOD.replace("[7]", "[8]")
    row = make.make_finished_evaluation(task_version=version, source=changed, mode="ranked")
    for path in (
        "/tasks/scale/",
        "/leaderboard/?device=cpu&task=scale",
        f"/submissions/{row.submission_id}/",
    ):
        assert "98 % like kbench-good" in client.get(path).content.decode()
    Agent.objects.filter(pk=row.submission.agent_id).update(kind=Agent.Kind.SHIPPED, user=None)
    assert not likeness(row.submission)
