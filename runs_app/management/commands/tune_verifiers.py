"""`manage.py tune_verifiers`: improve a verifier's prompt on kernels that hardware has judged."""

from __future__ import annotations

import signal
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from runs_app.core.errors import SubmissionError
from runs_app.models import Tuning
from runs_app.optimiser.evolve.judging import VERIFIERS
from runs_app.optimiser.verifiers.tuning import TuningRequest, tune, use_prompt
from tasks_app.templatetags.display import cost

_NUMBERS = {
    **dict.fromkeys(("generations", "population", "seed", "concurrency")),
    "examples": "number of kernels to train on",
    "held-out": "number of kernels to test on",
}
"""Options that are whole numbers, with what they mean where the name does not say it."""


class Command(BaseCommand):
    """Tune a prompt, and print the accuracy of each generation."""

    help = (
        "Improve a verifier's prompt over generations, on a balanced set of stored evaluations, "
        "and report training and held-out accuracy. Ctrl-C keeps the finished generations."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        default = TuningRequest(verifier="", model="")
        parser.add_argument("--verifier", required=True, choices=VERIFIERS)
        parser.add_argument("--model", required=True, help="name of a language model on this site")
        for name, words in _NUMBERS.items():
            usual = getattr(default, name.replace("-", "_"))
            parser.add_argument(f"--{name}", type=int, default=usual, help=words)
        parser.add_argument(
            "--max-usd",
            type=float,
            default=default.max_usd,
            help=f"exact cap on the cost (default {default.max_usd:g})",
        )
        parser.add_argument("--use", action="store_true", help="use the new prompt in new runs")

    def handle(self, **options: Any) -> None:
        names = TuningRequest.__dataclass_fields__
        request = TuningRequest(**{name: options[name] for name in names})
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            tuning = tune(request=request, clock=timezone.now, report=self._report)
        except SubmissionError as error:
            raise CommandError(str(error)) from error
        if tuning.reason:
            self.stdout.write(f"Tuning ended early: {tuning.reason}.")
        prompt = tuning.prompts.first()
        if prompt is None:
            self.stdout.write("No prompt did better in training than the original.")
        elif options["use"]:
            use_prompt(prompt=prompt)
            self.stdout.write(f"Version {prompt.version} of {prompt.verifier} is now in use.")
        else:
            self.stdout.write(
                f"Stored as version {prompt.version} of {prompt.verifier}, but not in use."
            )
        spent = cost(tuning.usd, is_plain=True)
        self.stdout.write(f"Cost: {spent}. Page: /verifiers/tunings/{tuning.pk}/")

    def _report(self, tuning: Tuning, record: dict[str, Any]) -> None:
        train, held_out = _words(record["train"]), _words(record["held_out"])
        self.stdout.write(
            f"generation {record['number']}: training {train}, held out {held_out}, "
            f"{cost(tuning.usd, is_plain=True)} so far"
        )


def _words(count: dict[str, int] | None) -> str:
    return f"{count['right']}/{count['of']}" if count and count["of"] else "–"
