"""Which are compared, as the address says, and tables: each has a column, what is asked a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import UUID

from django.http import QueryDict

from tasks_app.parameters import address
from tasks_app.spreadsheet import FORMS

NONE = "–"


@dataclass(frozen=True)
class Head:
    """One thing that is compared, with the addresses of pages that pin it or leave it out."""

    label: str
    address: str
    subs: tuple[str, ...]
    pinned: bool
    pin: str
    remove: str


@dataclass(frozen=True)
class Cell:
    """An answer in words; `note` says how it stands to the pinned one's, or what to mind."""

    text: str
    note: str = ""
    differs: bool = False
    address: str = ""


@dataclass(frozen=True)
class Row:
    """One fact or measure of everything that is compared."""

    label: str
    cells: tuple[Cell, ...]
    address: str = ""

    @property
    def differs(self) -> bool:
        """Whether any of them is unlike the pinned one."""
        return any(cell.differs for cell in self.cells)


@dataclass(frozen=True)
class Table:
    """Rows over the columns of `heads`; in tables of words, those that differ are marked."""

    asked: str
    heads: Sequence[Head]
    rows: Sequence[Row]
    caption: str = ""
    in_words: bool = False


def plain(label: str, values: Iterable[object]) -> Row:
    """A row of values that stand for themselves."""
    return Row(label, tuple(Cell(str(value)) for value in values))


def texts(told: Sequence[Mapping[str, str]], pinned: int) -> list[Row]:
    """A row for each name in any of these, in the order of their appearance."""
    names = dict.fromkeys(name for each in told for name in each)
    rows = {name: [each.get(name) or NONE for each in told] for name in names}
    return [
        Row(name, tuple(Cell(text, differs=text != values[pinned]) for text in values))
        for name, values in rows.items()
    ]


MOST = 5
_LONGEST = 150

Found = TypeVar("Found")


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What is compared: its parameter in addresses, its words, and what its form repeats."""

    name: str
    one: str
    many: str
    repeated: tuple[str, ...] = ("all",)
    in_files: bool = True


@dataclass(kw_only=True)
class Choice:
    """The names or numbers in an address, each once, and sentences on what it cannot have."""

    kind: Kind
    query: QueryDict
    keys: list[str]
    problems: list[str] = field(default_factory=list)
    pinned: str = ""

    @property
    def show_all(self) -> bool:
        """Whether what is alike is shown, too."""
        return self.query.get("all") == "1"

    @property
    def toggle_all(self) -> str:
        """The address that changes this."""
        return address(self.query, all=None if self.show_all else "1")

    @property
    def downloads(self) -> list[tuple[str, str]]:
        """The forms that the comparison has as a file, with their addresses."""
        forms = FORMS if self.kind.in_files else ()
        return [(form.upper(), address(self.query, format=form)) for form in forms]

    @property
    def repeated(self) -> list[tuple[str, object]]:
        """Fields of the form that adds another one."""
        kept = [(name, value) for name, value in self.query.items() if name in self.kind.repeated]
        return [*((self.kind.name, key) for key in self.keys), ("pin", self.pinned), *kept]

    @property
    def has_room(self) -> bool:
        """Whether another one fits."""
        return len(self.keys) < MOST

    def settle(self, found: Mapping[str, Found], first: str = "") -> Found | None:
        """Keep those that there are. Answer the pinned one: what the address says, or `first`."""
        wanted = self.query.get("pin", "")
        self.keys = list(found)
        self.pinned = wanted if wanted in found else first or next(iter(found), "")
        return found.get(self.pinned)

    def head(self, key: str, label: str, leads_to: str, *subs: str) -> Head:
        """The head of one that was found."""
        others = [other for other in self.keys if other != key]
        pin = address(self.query, pin=key)
        remove = address(self.query, **{self.kind.name: others})
        return Head(label, leads_to, subs, key == self.pinned, pin, remove)

    def texts(self, asked: str, heads: Sequence[Head], told: Sequence[Mapping[str, str]]) -> Table:
        """What is told of each in words: what differs, or all of it."""
        rows = texts(told, self.keys.index(self.pinned))
        shown = [row for row in rows if self.show_all or row.differs]
        return Table(asked, heads, shown, "≠ marks differences from the pinned one.", True)


def chosen(query: QueryDict, kind: Kind, *, numbers: bool = False) -> Choice:
    """The values of the kind's parameter; `numbers` of rows are checked for their form."""
    name = kind.name
    wanted = [text.strip() for text in query.getlist(name) if text.strip()]
    wanted = [text.lower() for text in wanted] if numbers else wanted
    choice = Choice(kind=kind, query=query, keys=list(dict.fromkeys(wanted)))
    if numbers:
        for text in [text for text in choice.keys if not _is_number(text)]:
            choice.keys.remove(text)
            choice.problems.append(
                f"{name}: {text[:60]!r} is not a {name} number; copy it from the {name}'s address."
            )
    long = [text for text in choice.keys if len(text) > _LONGEST]
    choice.keys = [text for text in choice.keys if text not in long]
    choice.problems += [f"{name}: {text[:60]!r}… is too long for a name." for text in long]
    if len(choice.keys) > MOST:
        choice.problems.append(
            f"{name}: at most {MOST} fit side by side; the first {MOST} are shown."
        )
        choice.keys = choice.keys[:MOST]
    return choice


def _is_number(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False
