#!/usr/bin/env python
"""Entry point of the site's commands."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command on the command line."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kbench_web.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
