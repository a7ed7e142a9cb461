"""What the content policy must allow on pages that draw with plotly.js."""

from __future__ import annotations

PLOTLY_STYLES = ["'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"]
"""Hash of the style element that plotly.js 4.1 writes: an empty one, which it fills rule by
rule."""
