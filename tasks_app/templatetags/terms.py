"""Words that explain themselves where they stand: by pointer, touch and keyboard."""

from __future__ import annotations

import itertools

from django import template
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from tasks_app.documents import terms

register = template.Library()

_numbers = itertools.count(1)
"""Parts of a page come one by one, and each of them may explain the same word."""


@register.simple_tag
def term(word: str, label: str = "") -> SafeString:
    """A button with `label`, or the word itself, that shows what the glossary says of the word.

    Raises KeyError for a word that is not in docs/glossary.md; a test finds it.
    """
    return explained(label or word, SafeString(terms()[word]))


@register.simple_tag
def explained(label: str, meaning: str) -> SafeString:
    """A button with `label` that shows `meaning`."""
    context = {"label": label, "meaning": meaning, "identity": f"term-{next(_numbers)}"}
    return SafeString(render_to_string("tasks_app/term.html", context).strip())
