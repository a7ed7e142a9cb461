"""What is logged of requests that nobody's browser sends: a line, without a traceback."""

from __future__ import annotations

import logging

_STRANGE = "django.security."


class BriefFilter(logging.Filter):
    """Keeps the log short where anybody can make it long: by a wrong host or too many fields."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Drop the traceback of a request that Django refused as suspicious."""
        if record.name.startswith(_STRANGE):
            record.exc_info = record.exc_text = None
        return True
