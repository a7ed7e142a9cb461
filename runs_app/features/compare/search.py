"""What the search over all pages finds here."""

from __future__ import annotations

PAGES = (("compare-agents", "Compare", "side by side agents models submissions"),)
