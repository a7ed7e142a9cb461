"""A fresh installation, used over its API with a token, as somebody from outside would."""

from __future__ import annotations

import json
import secrets
import shutil
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from http.client import HTTPException
from pathlib import Path
from typing import Any

from gpu_runner.data.verdict import DeviceKind, Language, Mode
from tests.installation import Installation

USER = "bench"
NO_LIMITS = {
    "KBENCH_MAX_WAITING_PER_USER": "1000",
    "KBENCH_MAX_SUBMISSIONS_PER_DAY": "100000",
    "KBENCH_API_REQUESTS_PER_MINUTE": "1000000",
}
ALONE = {"KBENCH_SUBMIT_SHIPPED_KERNELS": "0"}
"""Nothing is measured but what is submitted, and the audits that follow from it."""
POLL_S = 0.1
_VERDICT_S, _IDLE_S, _DEVICE_S = 900.0, 900.0, 180.0
_REQUEST_S = 60.0

Document = dict[str, Any]


@dataclass(frozen=True)
class Kernel:
    """A source to submit. Each submission of it is made another one by a comment."""

    name: str
    task: str
    source: str
    language: Language | None = None
    """None for the device's own."""


@dataclass(frozen=True)
class Sent:
    """What was submitted, and when, by `time.monotonic`."""

    kernel: Kernel
    mode: Mode
    submission: str
    at: float


class RefusedError(Exception):
    """The API did not do what was asked; the text is its answer.

    is_final: whether asking again would be in vain; else it may be away, or too busy.
    """

    def __init__(self, words: str, status: int | None = None) -> None:
        """Say so in these words; status: of its answer, if there was one."""
        super().__init__(words)
        self.is_final = status is not None and 400 <= status < 500 and status not in (408, 429)


class Site:
    """A running site with a device of a kind, and a token."""

    def __init__(
        self,
        kind: DeviceKind,
        *options: str,
        settings: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        """Start one on a free port; nothing is waited for.

        folder: its data, which stay there; without one it has a folder of its own, gone with it.
        """
        self.kind, self.device, self.token = kind, "", ""
        self._keeps, self._has_user = folder is not None, bool(folder and folder.exists())
        self.folder = folder or Path(tempfile.mkdtemp(prefix="kbench-site-"))
        chosen = NO_LIMITS | dict(settings or {})
        self.installation = Installation(self.folder, *options, settings=chosen)

    @property
    def age_s(self) -> float:
        """Seconds since `manage.py up` was started."""
        return time.monotonic() - self.installation.began

    def open(self, *, measures: bool = True) -> None:
        """Wait until it answers and its runner has reported; make an account and a token.

        measures: whether it has a runner.
        """
        self.installation.wait_until_ready()
        if not self._has_user:
            self.installation.manage(
                *(
                    "createsuperuser",
                    "--no-input",
                    "--username",
                    USER,
                    "--email",
                    "bench@localhost",
                ),
                DJANGO_SUPERUSER_PASSWORD=secrets.token_urlsafe(),
            )
        self.token = self.installation.manage("create_token", USER).strip()
        if measures:
            self.installation.wait(self._find_device, f"no {self.kind} device", _DEVICE_S)

    def close(self) -> None:
        """Stop it and forget its data, unless they are kept."""
        self.installation.stop()
        if not self._keeps:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _find_device(self) -> bool:
        queues = self.ask("queue")
        found = [q for q in queues if q["kind"] == self.kind.value and not q["reason"]]
        self.device = found[0]["device"] if found else ""
        return bool(found)

    def ask(self, path: str, document: Document | None = None, key: str = "") -> Any:
        """What the API answers; raises `RefusedError` for a status that is no success.

        key: what is asked with the same one again is done once.
        """
        request = urllib.request.Request(  # of our own site
            f"{self.installation.url}/api/v1/{path}",
            data=None if document is None else json.dumps(document).encode(),
            headers={
                "Authorization": f"Bearer {self.token}",
                "Content-Type": "application/json",
                **({"Idempotency-Key": key} if key else {}),
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=_REQUEST_S) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            words = error.read().decode(errors="replace")
            raise RefusedError(f"{path}: {error.code} {words}", error.code) from None
        except (OSError, HTTPException, ValueError) as error:
            raise RefusedError(f"{path}: {error}") from error

    def submit(self, kernel: Kernel, mode: Mode) -> Sent:
        """Submit a kernel as a source that was never seen before."""
        at = time.monotonic()
        language = kernel.language or self.kind.language
        begins = "#" if language is Language.PYTHON else "//"
        document = {
            "task": kernel.task,
            "source": f"{begins} {secrets.token_hex(8)}\n{kernel.source}",
            "language": language.value,
            "device": self.device,
            "mode": mode.value,
        }
        return Sent(kernel, mode, self.ask("submissions", document)["id"], at)

    def evaluation(self, sent: Sent) -> Document:
        """The evaluation of a submission; of several, the one that was asked for."""
        found = self.ask(f"submissions/{sent.submission}")["evaluations"]
        return next(dict(e) for e in reversed(found) if e["mode"] == sent.mode.value)

    def verdict(self, sent: Sent) -> tuple[float, Document]:
        """Seconds from before a submission to when its verdict was seen, and the evaluation."""
        seen: list[Document] = []

        def is_over() -> bool:
            seen[:] = [self.evaluation(sent)]
            return seen[0]["status"] in ("FINISHED", "CANCELLED")

        self.installation.wait(is_over, "no verdict", _VERDICT_S, POLL_S)
        return time.monotonic() - sent.at, seen[0]

    def queue(self) -> Document:
        """The device's queue."""
        return next(dict(q) for q in self.ask("queue") if q["device"] == self.device)

    def wait_until_idle(self) -> None:
        """Wait until nothing waits for the device and nothing runs on it."""

        def is_idle() -> bool:
            queue = self.queue()
            return not queue["depth"] and not queue["running"]

        self.installation.wait(is_idle, "the device is never idle", _IDLE_S, 0.5)

    def ranked_tasks(self) -> set[str]:
        """Tasks with a ranked row on the device's board."""
        query = urllib.parse.urlencode(
            {"by": "submission", "device": self.device, "contaminated": 1}
        )
        rows: Sequence[Document] = self.ask(f"leaderboard?{query}")["rows"]
        return {row["task"] for row in rows if row["rank"] is not None}


def waited_s(evaluation: Document) -> float | None:
    """Seconds that an evaluation waited in its queue, by the site's clock."""
    return _between(evaluation["created_at"], evaluation["started_at"])


def _between(first: str, last: str | None) -> float | None:
    if last is None:
        return None
    return (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()
