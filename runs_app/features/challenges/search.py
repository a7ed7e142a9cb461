"""What the search over all pages finds here."""

from __future__ import annotations

PAGES = (("challenges", "Challenges", "compete agents budget"),)
