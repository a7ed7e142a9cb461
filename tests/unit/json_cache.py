"""A cache in memory that takes what the one in Redis takes: plain JSON."""

from __future__ import annotations

import json
from typing import Any

from django.core.cache.backends.locmem import LocMemCache


class JsonMemory(LocMemCache):
    """Values come back as JSON has them: a tuple as a list; what JSON can't say is an error."""

    def set(self, key: Any, value: Any, *arguments: Any, **options: Any) -> None:
        """Store a value."""
        super().set(key, json.loads(json.dumps(value)), *arguments, **options)
