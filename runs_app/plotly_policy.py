"""What the content policy must allow on pages that draw with plotly.js."""

from __future__ import annotations

PLOTLY_STYLES = [
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='",
    "'sha256-ji27qzEtxXZW+7dun6UwjHXJ18e6WAin1VvNtkzIE/o='",
]
"""Hashes of the style elements that plotly.js 4.1 writes: an empty one, which it fills rule by
rule, and that of its maps, which nothing here draws but which would be an error in the console."""
