"""How a board is cited: its address up to a day, and a digest of its file on that day."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date

from django.urls import reverse

from leaderboard_app.boards.board import board as board_of
from leaderboard_app.boards.query import By, Query
from leaderboard_app.boards.selectors import BoardTask
from leaderboard_app.boards.tables import TABLES
from runs_app.models import Device
from tasks_app.numbers import counted

_KINDS = {
    By.LEADERS: "leaders", By.MATRIX: "best scores by task and agent",
    By.SUBMISSION: "ranked kernels", By.AGENT: "agents", By.MODEL: "language models",
}  # fmt: skip
_SPECIAL = str.maketrans({char: f"\\{char}" for char in "&%$#_{}"} | {"\\": "/"})


@dataclass(frozen=True, kw_only=True)
class Citation:
    """What a page and a bibliography say of a board; `file` is the address of its CSV."""

    title: str
    address: str
    file: str
    rows: str
    digest: str  # SHA-256 of that CSV
    until: date
    today: date
    site: str
    key: str

    @property
    def plain(self) -> str:
        """One paragraph."""
        return (
            f"kbench ({self.site}). {self.title}. {self.rows}, results up to {self.until}."
            f" {self.address} (accessed {self.today}). SHA-256 of the CSV: {self.digest}"
        )

    @property
    def bibtex(self) -> str:
        """An entry that any BibTeX style understands."""
        fields = {
            "title": f"{{{self.title.translate(_SPECIAL)}}}",
            "author": f"{{kbench ({self.site.translate(_SPECIAL)})}}",
            "year": str(self.until.year),
            "month": str(self.until.month),
            "howpublished": f"\\url{{{self.address}}}",
            "note": f"{self.rows}, results up to {self.until}; accessed {self.today};"
            f" SHA-256 of the CSV: {self.digest}",
        }
        lines = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items())
        return f"@misc{{{self.key},\n{lines}\n}}"


def citation(query: Query, tasks: Iterable[BoardTask], host: str, today: date) -> Citation:
    """Of the board that the query asks for, up to its last day or today."""
    known, table = list(tasks), TABLES[query.by]
    until = min(query.until or today, today)
    dated = replace(query, until=until)
    board, address = board_of(dated, known), dated.address()
    return Citation(
        title=_title(query, known),
        address=f"{host}{reverse('leaderboard')}?{address}",
        file=f"/api/v1/leaderboard?{address}&format=csv",
        rows=counted(len(board.whole), "row"),
        digest=hashlib.sha256(table.csv(map(table.record, board.whole)).encode()).hexdigest(),
        until=until,
        today=today,
        site=host.partition("//")[2],
        key="-".join(filter(None, ("kbench", query.task or query.by, query.device, str(until)))),
    )


def _title(query: Query, tasks: Iterable[BoardTask]) -> str:
    device = Device.objects.filter(slug=query.device).values_list("name", flat=True).first()
    about = next((task.title for task in tasks if task.slug == query.task), "All tasks")
    direction = f" ({query.direction})" if query.direction else ""
    return f"{about}{direction} on {device or query.device}: {_KINDS[query.by]}"
