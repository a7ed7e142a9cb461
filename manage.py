#!/usr/bin/env python
"""Entry point of the site's commands."""

from __future__ import annotations

import contextlib
import os
import sys


def main() -> None:
    """Run the command on the command line."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kbench_web.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line
    from django.db import DatabaseError, connection

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(f"Error in the settings: {error}")
    except DatabaseError:
        with contextlib.suppress(DatabaseError):
            if not connection.introspection.table_names():
                sys.exit(
                    f"The database {connection.settings_dict['NAME']} is empty. Start the site with"
                    " `make up` first, or set the site's own KBENCH_DATA_DIR or DATABASE_URL."
                )
        raise


if __name__ == "__main__":
    main()
