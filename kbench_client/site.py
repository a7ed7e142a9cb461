"""A kbench site over its API: an answer is its JSON, a refusal a `Stop` that names the field."""

from __future__ import annotations

import itertools
import json
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import httpx2

from kbench_client import version
from kbench_client.config import Account
from kbench_client.exits import Exit, Stop

API = "/api/v1"
ID = re.compile(r"(?=.*[0-9])[0-9a-f]{8}[0-9a-f-]{0,28}")
"""An id, or its beginning; no name of a task or a challenge looks like one."""
_TIMEOUT_S = 30.0
_PAUSE_S = 1.0
_TRIES = 3
_MOST_LISTED = 200  # Source: the API's largest page of one's own submissions
_TOO_MANY = 429
_NO_NEWS = (304, _TOO_MANY)

Document = dict[str, Any]


class Site:
    """What one may ask a site; close it when done."""

    def __init__(
        self,
        account: Account,
        *,
        warn: Callable[[str], None] = lambda text: None,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        """Ask as `account`; `warn` hears once where the site is of another version."""
        self.account = account
        self._warn = warn
        headers = {"Accept": "application/json", "User-Agent": f"kbench/{version() or 'unknown'}"}
        self._http = httpx2.Client(headers=headers, timeout=_TIMEOUT_S, transport=transport)
        self.use(account.token)

    def use(self, token: str) -> None:
        """Ask with this token from now on; without one if it is empty."""
        self.account = replace(self.account, token=token)
        self._http.headers.pop("Authorization", None)
        if token:
            self._http.headers["Authorization"] = f"Bearer {token}"

    def need_token(self) -> None:
        """Raise `Stop` where there is no token."""
        if not self.account.token:
            raise Stop(Exit.NO_TOKEN, "run `kbench login`, or set KBENCH_TOKEN", "token")

    def close(self) -> None:
        self._http.close()

    def about(self) -> Document:
        """The site's version, its client, and whose token this is."""
        return dict(self.get("/site"))

    def tasks(self, **filters: str) -> list[Document]:
        """All tasks that fit, by name."""
        return list(self._pages("/tasks", {"fields": "all", **filters}))

    def task(self, name: str) -> Document:
        """A task with the sources of its shipped kernels."""
        return dict(self.get(f"/tasks/{_segment(name)}", {"fields": "all"}))

    def task_version(self, name: str, number: int) -> Document:
        """A version of a task with its document, also one that isn't ranked any more."""
        return dict(
            self.get(
                f"/tasks/{_segment(name)}/versions/{number}", {"against": "0", "fields": "all"}
            )
        )

    def submit(self, payload: Mapping[str, object]) -> Document:
        """Enter a kernel; sent twice, it is entered once."""
        return self._post("/submissions", payload)

    def draft(self, payload: Mapping[str, object]) -> Document:
        """Write a task as a draft, and submit kernels to it."""
        return self._post("/drafts", payload)

    def submit_many(self, payload: Mapping[str, object], key: str) -> Document:
        """Enter up to 64 kernels for rewards; sent twice with one key, they are entered once."""
        return self._post("/rewards", payload, key)

    def rewards(self, identities: Sequence[str]) -> tuple[list[Document], float]:
        """Rewards of up to 64 submissions, and in how many seconds to ask again."""
        answer = self._ask("GET", f"{API}/rewards", params={"ids": list(identities)})
        return list(answer.json()), _pause_s(answer)

    def submissions(self, limit: int, **filters: str) -> list[Document]:
        """The token's owner's newest submissions; `fields="all"`: all that lists have."""
        page = {"limit": str(min(limit, _MOST_LISTED)), **filters}
        return list(itertools.islice(self._pages("/submissions", page), limit))

    def submission(self, identity: str, *, raw: bool = False) -> Document:
        """A submission with all results; `raw`: with the times and seeds of all calls, too."""
        given = {"raw": "true"} if raw else {}
        return dict(self.get(f"/submissions/{_segment(identity)}", given))

    def watch_submission(self, identity: str, timeout_s: float) -> Iterator[Document]:
        """A submission's status, each time that it changes, until it or the time is over."""
        return self._watch(f"/submissions/{_segment(identity)}/status", timeout_s)

    def cancel(self, identity: str) -> Document:
        """Take a submission's newest evaluation out of the queue, or stop it."""
        return self._post(f"/submissions/{_segment(identity)}/cancel", {})

    def board(self, **filters: str) -> Document:
        """The ranked rows."""
        return dict(self.get("/leaderboard", filters))

    def start_run(self, payload: Mapping[str, object]) -> Document:
        """Start an optimization run; sent twice, it is started once."""
        return self._post("/runs", payload)

    def run(self, identity: str) -> Document:
        return dict(self.get(f"/runs/{_segment(identity)}"))

    def watch_run(self, identity: str, timeout_s: float) -> Iterator[Document]:
        """A run, each time that it changes, until it has ended or the time is over."""
        return self._watch(f"/runs/{_segment(identity)}", timeout_s)

    def steer_run(self, identity: str, step: str, payload: Mapping[str, object]) -> Document:
        """Pause, resume, stop or extend a run; `again` answers with another one."""
        return self._post(f"/runs/{_segment(identity)}/{step}", payload)

    def challenges(self) -> list[Document]:
        """All challenges, newest first."""
        return list(self._pages("/challenges", {}))

    def challenge(self, name: str) -> Document:
        """A challenge with what came of it."""
        return dict(self.get(f"/challenges/{_segment(name)}"))

    def entries(self, name: str) -> list[Document]:
        """A challenge's entries, newest first."""
        return list(self._pages(f"/challenges/{_segment(name)}/entries", {}))

    def enter(self, name: str, payload: Mapping[str, object]) -> Document:
        """Begin an entry to a challenge; the answer holds its token."""
        return self._post(f"/challenges/{_segment(name)}/entries", payload)

    def entry(self, identity: str) -> Document:
        """Where an entry to a challenge stands."""
        return dict(self.get(f"/entries/{_segment(identity)}"))

    def watch_entry(self, identity: str, timeout_s: float) -> Iterator[Document]:
        """An entry, each time that it changes, until it has been ranked or the time is over."""
        return self._watch(f"/entries/{_segment(identity)}", timeout_s)

    def report(self, identity: str, payload: Mapping[str, Any]) -> Document:
        """Report what an entry has spent in all, and its transcript."""
        return self._post(f"/entries/{_segment(identity)}/report", payload)

    def finish(self, identity: str) -> Document:
        """End an entry, so that its best kernels are ranked."""
        return self._post(f"/entries/{_segment(identity)}/finish", {})

    def get(self, path: str, parameters: Mapping[str, str] | None = None) -> Any:
        """The JSON under a path of the API."""
        return self._ask("GET", f"{API}{path}", params=dict(parameters or {})).json()

    def _post(self, path: str, payload: Mapping[str, object], key: str = "") -> Document:
        key = key or str(uuid.uuid4())
        answer = self._ask("POST", f"{API}{path}", json=payload, headers={"Idempotency-Key": key})
        return dict(answer.json())

    def _pages(self, path: str, filters: Mapping[str, str]) -> Iterator[Document]:
        answer = self._ask("GET", f"{API}{path}", params=dict(filters))
        yield from answer.json()
        while onward := re.match(r'<(/[^>]+)>; rel="next"', answer.headers.get("Link", "")):
            answer = self._ask("GET", onward.group(1))
            yield from answer.json()

    def _watch(self, path: str, timeout_s: float) -> Iterator[Document]:
        """Ask again when the site says so, and yield each new answer."""
        deadline = time.monotonic() + timeout_s
        known: dict[str, str] = {}
        while True:
            answer = self._send("GET", f"{API}{path}", headers=known)
            over = False
            if answer.status_code not in _NO_NEWS:
                state = dict(self._checked(answer).json())
                yield state
                over = _over(state)
                known = {"If-None-Match": answer.headers.get("ETag", "")}
            left_s = deadline - time.monotonic()
            if over or left_s <= 0:
                break
            time.sleep(min(_pause_s(answer), left_s))
        if not known:  # every answer was 429
            self._checked(answer)

    def _ask(self, method: str, path: str, **options: object) -> httpx2.Response:
        return self._checked(self._send(method, path, **options))

    def _send(self, method: str, path: str, **options: Any) -> httpx2.Response:
        for left in reversed(range(_TRIES)):
            try:
                answer = self._http.request(method, self.account.url + path, **options)
                break
            except (httpx2.TransportError, httpx2.InvalidURL) as error:
                if not left or isinstance(error, httpx2.ConnectError | httpx2.InvalidURL):
                    raise Stop(Exit.UNREACHABLE, self._unreachable(error)) from None
                time.sleep(_PAUSE_S)
            except UnicodeEncodeError:
                raise Stop(Exit.MISUSE, "the input contains bytes that are not text") from None
            except ValueError:
                raise Stop(Exit.MISUSE, "a number in the input is not finite") from None
        self._compare(answer)
        return answer

    def _checked(self, answer: httpx2.Response) -> httpx2.Response:
        """The answer, if the request succeeded; otherwise raises `Stop`."""
        if not answer.is_success:
            raise _refusal(answer, self.account.url)
        is_ours = "Kbench-Version" in answer.headers
        if not is_ours or "json" not in answer.headers.get("Content-Type", ""):
            raise Stop(Exit.UNREACHABLE, f"{self.account.url} responded, but isn't a kbench site")
        return answer

    def _unreachable(self, error: Exception) -> str:
        words = str(error) or type(error).__name__
        return (
            f"the site {self.account.url} cannot be reached: {words};"
            " set KBENCH_URL, or run `kbench login URL`"
        )

    def _compare(self, answer: httpx2.Response) -> None:
        """Warn once where client and site do not fit."""
        theirs = answer.headers.get("Kbench-Version", "")
        if differ(version(), theirs):
            self._warn(
                f"this client is kbench {version()}, the site is {theirs};"
                f" {self.account.url}/agents.md says how to install the matching one"
            )
            self._warn = lambda text: None


def differ(ours: str, theirs: str) -> bool:
    """Whether two versions do not fit; without its part after `+` one fits all of its release."""
    if not ours or not theirs:
        return False
    (release, _, build), (other, _, their_build) = ours.partition("+"), theirs.partition("+")
    return release != other or bool(build and their_build and build != their_build)


def _over(state: Document) -> bool:
    return bool(state["over"] if "over" in state else state["status"] in ("FINISHED", "STOPPED"))


def _pause_s(answer: httpx2.Response) -> float:
    """How many seconds the site wants the client to wait."""
    told = answer.headers.get("Retry-After", "")
    return max(float(told), _PAUSE_S) if re.fullmatch(r"[0-9]{1,4}", told) else _PAUSE_S


def _segment(text: str) -> str:
    """A part of a path that stays one part, whatever it is."""
    return re.sub(r"[^\w-]", lambda found: f"%{ord(found.group()) & 0xFF:02X}", text) or "-"


def _refusal(answer: httpx2.Response, url: str) -> Stop:
    """A refusal in the site's words."""
    try:
        problem = answer.json()
        field, reason = str(problem["field"]), str(problem["reason"])
        also = [(str(each["field"]), str(each["reason"])) for each in problem.get("also", ())]
    except (json.JSONDecodeError, TypeError, KeyError, UnicodeDecodeError):
        field, reason, also = "", f"{url} answered with status {answer.status_code}", []
    status = Exit.MISUSE
    if answer.status_code in (401, 403):
        status = Exit.NO_TOKEN
    elif answer.status_code == _TOO_MANY:
        status = Exit.LATER
    elif answer.status_code >= 500 or not answer.is_client_error:
        status = Exit.UNREACHABLE
    if answer.status_code == 401:
        reason += "; run `kbench login`, or set KBENCH_TOKEN"
    told = answer.headers.get("Retry-After", "")
    return Stop(status, reason, field, also=also, retry_s=int(told) if told.isdecimal() else 0)
