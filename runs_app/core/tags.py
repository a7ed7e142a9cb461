"""The tag `slot`: a place on a page that features fill."""

from __future__ import annotations

from django import template
from django.template.context import Context
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from runs_app.core.hooks import Slot, fillings

register = template.Library()


@register.simple_tag(takes_context=True)
def slot(context: Context, name: str, **about: object) -> SafeString:
    """What features put there; `about` is what the slot tells them."""
    engine = context.template.engine  # type: ignore[union-attr]
    made = fillings(Slot(name), context, **about)
    parts = (
        engine.get_template(each.template).render(
            context.new({**each.values, "csrf_token": context.get("csrf_token")})
        )
        for each in made
    )
    return format_html_join("", "{}", ((part,) for part in parts))
