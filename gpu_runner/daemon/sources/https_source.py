"""Jobs and events over HTTPS: this host asks, and nobody has to reach it."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

import httpx2

from gpu_runner.daemon.sources.contract import Away, Refused
from gpu_runner.data import codec
from gpu_runner.data.codec import DataError
from gpu_runner.data.event import Event
from gpu_runner.data.order import Ask, Order, Word

TAKE, EVENTS, WORD = "take", "events", "word"
"""What the site answers to, below `/runner/v1/`."""

_CONNECT_S = 5.0  # chosen, as the next: who takes longer is away
_ANSWER_S = 15.0  # chosen: events are stored in milliseconds
_TAKE_S = 60.0  # longer than the site keeps an ask that it has no job for
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_FOR_EVER = (400, 401, 403, 413, 422)  # HTTP statuses of what is refused, now and later


class HttpsSource:
    """A site, shown a runner's token. Proxies of HTTPS_PROXY are used."""

    is_endless = True
    unread = 0
    is_brief = False  # the site keeps an ask open, and notices when its runner hangs up

    def __init__(self, site: str, token: str) -> None:
        """Connect when it is used. Raises `DataError` for an address that would show the token."""
        parts = urlsplit(site)
        if parts.scheme not in ("https", "http") or not parts.hostname:
            raise DataError("site", f"{site!r} is not a web address such as https://kbench.example")
        if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
            raise DataError("site", "must begin with https://, or others could read the token")
        if not token:
            raise DataError("token", "is missing; set KBENCH_RUNNER_TOKEN or use --token")
        self._http = httpx2.Client(
            base_url=f"{site.rstrip('/')}/runner/v1/",
            headers={"Authorization": f"Bearer {token}"},
            timeout=httpx2.Timeout(_ANSWER_S, connect=_CONNECT_S),
        )
        self._pending: Ask | None = None

    def take(self, ask: Ask) -> Order | None:
        """The next job; see `Source`."""
        self._pending = self._pending or ask
        try:
            answer = self._said(TAKE, json=codec.encode(self._pending), timeout=_TAKE_S)
        except Refused as error:
            self._pending = None
            raise Away(str(error)) from error
        self._pending = None
        return codec.decode(Order, answer, "order") if answer is not None else None

    def send(self, event: Event) -> None:
        self._said(EVENTS, json={"events": [codec.encode(event)]})

    def done(self) -> None:
        """Nothing is held."""

    def word(self, runner: str) -> Word:
        """The latest; see `Source`. A token that is no longer known holds all work back."""
        try:
            return codec.decode(Word, self._said(WORD, json={"runner": runner}), "word")
        except Refused as error:
            return Word(hold=str(error))

    def _said(self, path: str, **options: Any) -> Any:
        """The answer's JSON, or None where there is none; raises `Away` or `Refused`."""
        try:
            response = self._http.post(path, **options)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise Away(f"the site cannot be reached: {error or type(error).__name__}") from error
        if response.status_code in _FOR_EVER:
            raise Refused(_reason(response))
        if not response.is_success:
            raise Away(f"the site answered with status {response.status_code}")
        if not response.content:
            return None
        try:
            return response.json()
        except ValueError as error:
            raise Away(
                f"the site's answer is not JSON; is {self._http.base_url} the right address?"
            ) from error


def _reason(response: httpx2.Response) -> str:
    try:
        return f"the site refused the request: {response.json()['reason']}"
    except (ValueError, KeyError, TypeError, json.JSONDecodeError):
        return f"the site refused the request with status {response.status_code}"
