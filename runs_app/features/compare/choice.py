"""Which are compared, as the address says: what is wrong in it, and what its links change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.http import QueryDict

MOST = 5
_LONGEST = 150


@dataclass(kw_only=True)
class Choice:
    """The names or numbers in an address, each once, and sentences on what it cannot have."""

    keys: list[str]
    problems: list[str] = field(default_factory=list)


def chosen(query: QueryDict, name: str, *, numbers: bool = False) -> Choice:
    """The values of the parameter `name`; `numbers` of rows are checked for their form."""
    wanted = [text.strip() for text in query.getlist(name) if text.strip()]
    wanted = [text.lower() for text in wanted] if numbers else wanted
    choice = Choice(keys=list(dict.fromkeys(wanted)))
    if numbers:
        for text in [text for text in choice.keys if not _is_number(text)]:
            choice.keys.remove(text)
            choice.problems.append(
                f"{name}: {text[:60]!r} is not a {name}'s number; copy it from its address."
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


def pinned_key(query: QueryDict, keys: Sequence[str]) -> str:
    """The key that all others are compared with: the one in `pin`, or the first of them."""
    wanted = query.get("pin", "")
    return wanted if wanted in keys else next(iter(keys), "")


def _is_number(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False
