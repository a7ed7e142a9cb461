"""Has a site judge kernels, many at once: submits them, waits, and survives the site's restarts.

One thread does the asking for everybody who waits: a request covers up to 64 kernels.
"""

from __future__ import annotations

import functools
import os
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kbench_client.config import account
from kbench_client.details import details
from kbench_client.exits import Exit, Stop
from kbench_client.kernels import read_kernels
from kbench_client.results import newest
from kbench_client.site import Site

MOST = 64  # kernels in a request, as the site allows
_MOST_CHARACTERS = 2 << 20  # chosen: the site takes 8 MiB of JSON, in which a character may be 6
_SOONEST_S, _LATEST_S = 1.0, 15.0  # chosen: a restart takes a few seconds
_FULL_S = 5.0  # chosen: until one's part of the queue may have room, if none of these ends before
_GATHER_S = 0.05  # chosen: what is asked at the same time goes into one request
_TOLD = ("id", "verdict", "reward", "reason", "seconds")

Document = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What the kernels are for, and how they're measured; the names are the API's."""

    task: str
    device: str = ""
    mode: str = "quick"
    direction: str = "forward"
    agent: str = ""
    model: str = ""
    private: bool = True


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What the site says of a kernel. `reward` is None if it says nothing about the kernel.

    `id` and `url` are empty if the site refused the kernel; its reward is 0 then.
    """

    id: str = ""
    verdict: str = ""
    reward: float | None = 0.0
    reason: str = ""
    seconds: float | None = None
    url: str = ""

    def value(self) -> float:
        """The reward; raises `Stop` if there is none, so that nobody learns from our faults."""
        if self.reward is None:
            reason = f"kbench could not judge this kernel, which may be correct: {self.reason}"
            raise Stop(Exit.UNREACHABLE, f"{reason} ({self.url})")
        return self.reward


@dataclass(eq=False)
class _Asked:
    """A kernel that somebody waits for; `id` once it has been submitted."""

    kernel: Document
    deadline: float
    answer: Future[Judged] = field(default_factory=Future)
    id: str = ""


class Judge:
    """Judges kernels for one task; may be used from several threads."""

    def __init__(self, site: Site, wanted: Wanted, *, limit_s: float = 600.0) -> None:
        """`limit_s`: how long a kernel may take from when it's handed in to its reward."""
        site.need_token()
        self.site, self.wanted, self.limit_s = site, wanted, limit_s
        self._lock = threading.Lock()
        self._open: list[_Asked] = []
        self._thread: threading.Thread | None = None
        self._sending: tuple[str, list[_Asked]] | None = None  # until the site has answered
        self._full_until = 0.0
        self._trouble = ""

    def begin(self, source: str, language: str = "", **beside: Any) -> Future[Judged]:
        """Hand in a kernel; the result may raise `Stop`. `beside`: see `fixed_files`."""
        kernel = {"source": source, "language": language, **beside}
        asked = _Asked(kernel, time.monotonic() + self.limit_s)
        with self._lock:
            self._open.append(asked)
            if self._thread is None:
                self._thread = self._start()
        return asked.answer

    def judge(self, sources: Iterable[str], language: str = "", **beside: Any) -> list[Judged]:
        """Judge kernels, and return when all are judged; raises `Stop`."""
        begun = [self.begin(text, language, **beside) for text in sources]
        return [each.result() for each in begun]

    def explain(self, judged: Judged) -> Document:
        """The compiler's log, the first mismatch and so on, as far as they can be had."""
        if not judged.id:
            return {}
        try:
            return details(newest(self.site.submission(judged.id)))
        except Stop:
            return {}

    def _start(self) -> threading.Thread:
        thread = threading.Thread(target=self._work, name="kbench", daemon=True)
        thread.start()
        return thread

    def _work(self) -> None:
        """Look after all that is open, until nothing is."""
        pause_s, wait_s = _GATHER_S, _SOONEST_S
        while True:
            time.sleep(pause_s)
            try:
                pause_s, wait_s = self._step(), _SOONEST_S
            except Stop as stop:
                self._trouble = stop.reason
                pause_s, wait_s = wait_s, min(2 * wait_s, _LATEST_S)
            except Exception as error:  # those who wait must hear of it
                self._sending = None
                self._fail(list(self._open), error)
            self._give_up()
            with self._lock:
                if not self._open:
                    self._thread = None
                    return

    def _step(self) -> float:
        """Submit what isn't submitted, and ask for the rest; returns when to do so again."""
        if self._sending is None and time.monotonic() >= self._full_until:
            batch = list(_batch(each for each in list(self._open) if not each.id))
            self._sending = (str(uuid.uuid4()), batch) if batch else None
        if self._sending is not None:
            self._send(*self._sending)
            self._sending = None
        submitted = [each for each in list(self._open) if each.id]
        pauses = [
            self._collect(submitted[first : first + MOST])
            for first in range(0, len(submitted), MOST)
        ]
        return min([*pauses, _SOONEST_S])

    def _send(self, key: str, batch: Sequence[_Asked]) -> None:
        """Submit a batch; raises `Stop` if the site may have taken it without saying so."""
        payload = {**asdict(self.wanted), "kernels": [each.kernel for each in batch]}
        try:
            answer = self.site.submit_many(payload, key)
        except Stop as stop:
            if stop.status is Exit.UNREACHABLE:
                raise
            if stop.status is Exit.LATER:
                self._wait_for_room(stop.reason)
            else:
                self._fail(batch, stop)
            return
        for asked, told in zip(batch, answer["kernels"], strict=True):
            asked.id = told["id"] or ""
            if told["later"]:
                self._wait_for_room(told["reason"])
            elif not asked.id:
                self._end(asked, Judged(reason=f"{told['field']}: {told['reason']}"))

    def _wait_for_room(self, reason: str) -> None:
        self._trouble, self._full_until = reason, time.monotonic() + _FULL_S

    def _collect(self, submitted: Sequence[_Asked]) -> float:
        """Ask for rewards, and tell those who wait; returns when to ask again."""
        by_id = {each.id: each for each in submitted}
        answers, pause_s = self.site.rewards(list(by_id))
        for told in answers:
            if told["over"]:
                found = {name: told[name] for name in _TOLD}
                url = self.site.account.url + told["url"]
                self._end(by_id[told["id"]], Judged(**found, url=url))
        return pause_s

    def _end(self, asked: _Asked, judged: Judged) -> None:
        self._close(asked)
        self._full_until = 0.0
        if not asked.answer.done():
            asked.answer.set_result(judged)

    def _fail(self, several: Sequence[_Asked], error: Exception) -> None:
        for asked in several:
            self._close(asked)
            if not asked.answer.done():
                asked.answer.set_exception(error)

    def _close(self, asked: _Asked) -> None:
        with self._lock:
            if asked in self._open:
                self._open.remove(asked)

    def _give_up(self) -> None:
        late = [each for each in list(self._open) if time.monotonic() > each.deadline]
        for each in late:
            where = f"submission {each.id} continues" if each.id else "it was not submitted"
            why = f"; the site's last message: {self._trouble}" if self._trouble else ""
            reason = f"no reward after {self.limit_s:g} s: {where}{why}"
            self._fail([each], Stop(Exit.TIME_OVER, reason))


@functools.cache
def _shared(wanted: Wanted, limit_s: float, process: int) -> Judge:
    return Judge(Site(account()), wanted, limit_s=limit_s)


def shared(wanted: Wanted, limit_s: float) -> Judge:
    """The one judge of this process for that, at the site of the user's configuration."""
    return _shared(wanted, limit_s, os.getpid())


def fixed_files(folder: str, entry: str = "") -> Document:
    """A folder's files as `begin` takes them, without the entry, whose place each kernel takes.

    Raises `Stop` as `read_kernels` does; nothing without a folder.
    """
    kernel = read_kernels([Path(folder)], entry) if folder else None
    return {"entry": kernel.entry, "files": dict(kernel.files)} if kernel else {}


def missing(package: str) -> Stop:
    """What to raise where another project's package isn't installed."""
    return Stop(Exit.MISUSE, f"this evaluator needs {package}: pip install {package}")


def _batch(several: Iterable[_Asked]) -> Iterator[_Asked]:
    """As many of them as fit into a request, the first always."""
    characters = 0
    for place, each in enumerate(several):
        files = each.kernel.get("files", {})
        characters += sum(map(len, (each.kernel["source"], *files.values())))
        if place == MOST or (place and characters > _MOST_CHARACTERS):
            return
        yield each
