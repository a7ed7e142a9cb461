"""What outputs hold before a call: random bits, of which no number is small."""

from __future__ import annotations

HUGE = 0x70
"""Set in every byte. Whatever the dtype and its place, a float is then at least 2^13 (float16),
2^97 (bfloat16, float32) or 2^769 (float64) in size, infinite or no number, and an integer is not
zero. Of bits that are random throughout, nearly half of all floats would be so small that a sum
which starts with one is right within its bound."""
