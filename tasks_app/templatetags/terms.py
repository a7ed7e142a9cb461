"""Words that explain themselves where they stand: by pointer, touch and keyboard."""

from __future__ import annotations

import itertools
from typing import Any

from django import template

from tasks_app.documents import terms

register = template.Library()

_numbers = itertools.count(1)
"""Parts of a page come one by one, and each of them may explain the same word."""


@register.inclusion_tag("tasks_app/term.html")
def term(word: str, label: str = "") -> dict[str, Any]:
    """A button with `label`, or the word itself, that shows what the glossary says of the word.

    Raises KeyError for a word that is not in docs/glossary.md; a test finds it.
    """
    slug = "".join(letter if letter.isalnum() else "-" for letter in word.lower())
    identity = f"term-{slug}-{next(_numbers)}"
    return {"label": label or word, "meaning": terms()[word], "identity": identity}
