"""Visits the pages of a site whose database was made before, and notes the numbers on them.

`python -m tests.old_site MOMENT [RECORD]` visits the database of the environment's settings as if
it were MOMENT (ISO 8601), and prints JSON: by address and visitor, the figures that were found. It
visits what an earlier record names; without one, all to which links lead. A record holds, by
address and by the names of all visitors who found the same, their figures.
It knows a site by its addresses alone, and so works on the code of any day.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

VISITORS = ("nobody", "ada", "root")
"""Who has not signed in, and the accounts of somebody and of an admin."""
TOKENS = {"ada": "kb_old-database-ada-laptop", "root": "kb_old-database-root-laptop"}
"""Tokens of the API, of which the database knows the digests."""
ENTRANCES = (
    "/", "/account/", "/api/", "/curate/history/", "/leaderboard/", "/runs/new/?task=scale",
    "/language-models/", "/verifiers/", "/runs/ablation/",
    "/tasks/scale/reevaluate/", "/tasks/wave/reevaluate/", "/tasks/?tag=vector",
    "/tasks/?scenario=memory", "/nowhere/",
    "/api/v1/tasks", "/api/v1/runs", "/api/v1/queue", "/api/v1/leaderboard",
    *(
        f"{base}?by={by}&device={device}{rest}"
        for base in ("/leaderboard/", "/api/v1/leaderboard")
        for by in ("submission", "agent", "model")
        for device in ("cpu", "nvidia-h200")
        for rest in ("", "&task=scale", "&verified=1", "&contaminated=1")
        if rest in ("", "&verified=1") or by == "submission"
    ),
    "/api/v1/leaderboard?by=agent&device=cpu&format=csv",
    "/api/v1/leaderboard?by=submission&device=cpu&task=scale&format=csv",
)  # fmt: skip
_OF_THE_API = (
    (r"/tasks/([\w-]+)/", ("/api/v1/tasks/{}", "/api/v1/tasks/{}/soundness",
                           "/api/v1/tasks/{}/versions", "/api/v1/tasks/{}/judgements")),
    (r"/tasks/([\w-]+/versions/\d+)/", ("/api/v1/tasks/{}",)),
    (r"/submissions/([\w-]+)/", ("/api/v1/submissions/{}",)),
    (r"/runs/([\w-]{36})/", ("/api/v1/runs/{}", "/api/v1/runs/{}/events")),
    (r"/runs/([\w-]{36}/candidates/\d+)/", ("/api/v1/runs/{}",)),
)  # fmt: skip
"""Addresses of the API that tell what a page shows, by the address of the page."""
_NOT_VISITED = re.compile(
    r"/(admin|static|sign-in|sign-out|sign-up)/|/download/|/api/v1/(docs|openapi)"
    r"|/estimate/|/source/|/json/|/runs/compare/\?run=.*&run=.*&run="
)
_QUERIES = re.compile(
    r"^[^?]*(\?(page|since|before|kind|state|status|run|act)=[^&]*(&run=[^&]*)?)?$"
)
"""Of links with a query, those that lead to more of the same, not to the same in other order."""
_NUMBER = re.compile(
    r"(?<![\w.\-/])(?:\d{4}-\d\d-\d\d|\d+(?:[.,:]\d+)*(?:e[+-]?\d+)?)(?=[^\W\d_]{0,3}(?!\w))"
)
"""A number or a date, with a unit of up to three letters, in no name such as `h200`."""
_UNSEEN = ("script", "style", "template", "svg")
_LONGEST_WORD = 32


class _Page(HTMLParser):
    """The text of the main part of a page, and all to which it leads."""

    def __init__(self, text: str) -> None:
        """Read a page, or a part of one."""
        super().__init__()
        self.links: list[str] = []
        self.words: list[str] = []
        self._whole = "<main" not in text
        self._within: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a link, and what is open."""
        self.links += [value for name, value in attrs if name in ("href", "hx-get") and value]
        if tag == "main" or tag in _UNSEEN:
            self._within.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close what was open."""
        if tag in self._within:
            self._within.remove(tag)

    def handle_data(self, data: str) -> None:
        """Keep what somebody sees."""
        is_seen = not any(tag in _UNSEEN for tag in self._within)
        if is_seen and (self._whole or "main" in self._within):
            self.words.append(data)


def of_document(value: Any, name: str = "") -> Iterator[str]:
    """What a JSON document says: `name=value` of its leaves, `name[]=length` of its lists."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from of_document(inner, key)
    elif isinstance(value, list):
        yield f"{name}[]={len(value)}"
        for inner in value:
            yield from of_document(inner, name)
    elif not isinstance(value, str):
        yield f"{name}={json.dumps(value)}"
    elif value and len(value) <= _LONGEST_WORD and not re.search(r"\s", value):
        yield f"{name}={value}"


def of_table(text: str) -> Iterator[str]:
    """What a CSV file says: `column=value` of its cells that have one."""
    for row in csv.DictReader(io.StringIO(text)):
        yield from of_document({name: cell for name, cell in row.items() if cell})


class Visit:
    """One visitor's way through the site."""

    def __init__(self, visitor: str) -> None:
        """Sign in, if it is not nobody."""
        from django.contrib.auth.models import User
        from django.test import Client

        self._client = Client()
        self._token = TOKENS.get(visitor, "")
        if visitor != VISITORS[0]:
            self._client.force_login(User.objects.get(username=visitor))

    def look(self, address: str) -> tuple[str, list[str]]:
        """The figures at an address, behind the status of the answer; and where links lead."""
        is_api = address.startswith("/api/v1/")
        headers = {"Authorization": f"Bearer {self._token}"} if is_api and self._token else {}
        answer = self._client.get(address, headers=headers)
        onward = answer.headers.get("Location", "/sign-in/")
        if not onward.startswith("/sign-in/"):  # the page has another address now
            answer = self._client.get(onward, follow=True)
        kind = answer.headers.get("Content-Type", "")
        figures, links = self._read(kind, answer.getvalue().decode())
        counted = sorted(Counter(figures).items())
        words = [figure if count == 1 else f"{figure} *{count}" for figure, count in counted]
        return "; ".join([str(answer.status_code), *words]), links

    def _read(self, kind: str, text: str) -> tuple[list[str], list[str]]:
        if kind.startswith("application/json"):
            return list(of_document(json.loads(text))), []
        if kind.startswith("text/csv"):
            return list(of_table(text)), []
        if not kind.startswith("text/html"):
            return _NUMBER.findall(text), []
        page = _Page(text)
        return _NUMBER.findall(" ".join(page.words)), page.links


def visit_all() -> dict[str, dict[str, str]]:
    """By address the figures of each visitor, of all to which links lead from the entrances."""
    visits = {visitor: Visit(visitor) for visitor in VISITORS}
    waiting = list(ENTRANCES)
    found: dict[str, dict[str, str]] = {}
    while waiting:
        address = waiting.pop(0)
        if address in found:
            continue
        found[address] = {}
        for visitor, visit in visits.items():
            found[address][visitor], links = visit.look(address)
            waiting += _onward(address, links)
    return found


def visit_again(record: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """The same of the addresses of a record.

    Of visitors who found the same, the first and the last go: who may see least, and most.
    """
    visits = {visitor: Visit(visitor) for visitor in VISITORS}
    found: dict[str, dict[str, str]] = {}
    for address, groups in record.items():
        names = [group.split()[place] for group in groups for place in (0, -1)]
        found[address] = {name: visits[name].look(address)[0] for name in dict.fromkeys(names)}
    return found


def _onward(address: str, links: list[str]) -> Iterator[str]:
    """The addresses to which a page leads and that are visited, and those of the API beside it."""
    path = address.partition("?")[0]
    for link in links:
        onward = link.partition("#")[0]
        onward = path + onward if onward.startswith("?") else onward
        if onward.startswith("/") and not _NOT_VISITED.search(onward) and _QUERIES.match(onward):
            yield onward
    for pattern, beside in _OF_THE_API:
        if match := re.fullmatch(pattern, path):
            yield from (each.format(match[1]) for each in beside)


def main() -> None:
    """Visit, and print what was found."""
    moment = datetime.fromisoformat(sys.argv[1])
    record = json.loads(Path(sys.argv[2]).read_text()) if len(sys.argv) > 2 else None
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kbench_web.settings")
    import django
    from django.test.utils import override_settings, setup_test_environment
    from django.utils import timezone

    timezone.now = lambda: moment
    django.setup()
    setup_test_environment(debug=False)
    memory = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    with override_settings(CACHES=memory, API_REQUESTS_PER_MINUTE=1_000_000):
        json.dump(visit_all() if record is None else visit_again(record), sys.stdout)


if __name__ == "__main__":
    main()
