"""What axe-core finds on a page that some people cannot use."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

_RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "resultTypes": ["violations"],  # it lists every element that breaks no rule, otherwise
}


def violations(page: Page) -> list[str]:
    """Each rule that the page breaks, with the first elements that do; empty on a good page."""
    found = Axe().run(page, options=_RULES).response["violations"]
    return [f"{rule['id']}: {[node['target'] for node in rule['nodes'][:3]]}" for rule in found]
