"""`manage.py judge_task NAME --model MODEL`: a language model's advice on a task."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from runs_app.core.errors import SubmissionError
from runs_app.features.advice.models import TaskJudgement
from runs_app.features.advice.services import JudgeRequest, judge_task, version_of
from tasks_app.templatetags.display import cost


class Command(BaseCommand):
    """Ask, print the verdicts, and store them."""

    help = (
        "Ask a language model whether part of a task is redundant, or its reference needlessly "
        "slow, and store the answer with its reasons and cost. The task's page shows it as "
        "advice; it doesn't decide whether the task is published. The exit status is 1 if there "
        "is no verdict; that failure is stored, too."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        default = JudgeRequest(model="")
        parser.add_argument("task", metavar="NAME", help="name of a task on this site")
        parser.add_argument("--number", type=int, help="version number (default: the current one)")
        parser.add_argument("--model", required=True, help="name of a language model on this site")
        parser.add_argument(
            "--max-usd",
            type=float,
            default=default.max_usd,
            help=f"cap on the call's cost (default {default.max_usd:g})",
        )

    def handle(self, **options: Any) -> None:
        request = JudgeRequest(model=options["model"], max_usd=options["max_usd"])
        try:
            version = version_of(options["task"], options["number"])
            judgement = judge_task(version=version, request=request, clock=timezone.now)
        except SubmissionError as error:
            raise CommandError(str(error)) from error
        self._say(judgement)

    def _say(self, judgement: TaskJudgement) -> None:
        call = judgement.call
        call.refresh_from_db()
        spent = f"Cost: {cost(call.cost_usd, is_plain=True)}."
        if judgement.problem:
            raise CommandError(f"no verdict: {judgement.problem}. {spent}")
        if not judgement.verdicts:
            raise CommandError("no verdict yet: another process is making the call")
        for verdict in judgement.verdicts:
            state = "FLAGGED" if verdict["flagged"] else "not flagged"
            self.stdout.write(f"{verdict['criterion']}: {state}. {verdict['reason']}")
        self.stdout.write(f"{spent} Page: /tasks/{judgement.version.task.slug}/soundness/")
