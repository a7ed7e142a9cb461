"""Files of results that come with kbench, in the folder `shipped_results`; there may be none."""

from __future__ import annotations

from pathlib import Path

from runs_app.features.transfer import faults, files
from runs_app.features.transfer.files import Document
from runs_app.features.transfer.models import ResultImport
from runs_app.features.transfer.record import ResultFile

FOLDER = Path(__file__).resolve().parent / "shipped_results"


def shipped_files() -> list[Path]:
    """Those that are there, by name."""
    return sorted(path for path in FOLDER.glob("*.json*") if path.is_file())


def unseen(path: Path) -> Document | None:
    """What the file says; None if it was imported before, so that a start costs next to nothing."""
    document = files.read(path)
    digest = faults.decode(document, ResultFile).digest()
    return None if ResultImport.objects.filter(digest=digest).exists() else document
