"""What `manage.py up` runs for a demo."""

from __future__ import annotations

DEMO = (("import_results", "--shipped"), ("import_run", "--shipped"))
