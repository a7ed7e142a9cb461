"""Tables of a comparison: what is compared has a column each, what is asked of it a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

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
    """An answer in words, and how it stands to the pinned one's."""

    text: str
    delta: str = ""
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
