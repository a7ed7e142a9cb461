"""What a person sends from the workbench: the text of a file, and what to do with the files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpu_runner.data.codec import DataError
from gpu_runner.data.formats.text import TASK_LIMIT_BYTES, decoded
from tasks_app.errors import CurationError


@dataclass(frozen=True, kw_only=True)
class Edit:
    """A saving, with at most one change to the list of files.

    `path` and `text` are the file in the editor. `opens` is the file to show next, at `line`.
    """

    files: Mapping[str, str]
    revision: int
    path: str
    text: str
    action: str
    new_path: str = ""
    upload: Any = None
    opened: str = ""
    line: str = ""

    @property
    def opens(self) -> str:
        """Path of the file to show after it."""
        if self.action == "delete":
            return ""
        if self.action == "upload":
            return self._upload_path()
        return {"add": self.new_path, "rename": self.new_path, "open": self.opened}.get(
            self.action, self.path
        )

    def result(self) -> dict[str, str]:
        """All texts after it; raises `CurationError` naming the field."""
        files = {**self.files, **({self.path: self.text} if self.path else {})}
        match self.action:
            case "add":
                self._must_be_free("new_path", self.new_path)
                files[self.new_path] = ""
            case "upload":
                files[self._upload_path()] = self._upload_text()
            case "rename":
                self._must_be_free("rename_to", self.new_path)
                files[self.new_path] = files.pop(self.path)
            case "delete":
                del files[self.path]
        return files

    def _must_be_free(self, field: str, path: str) -> None:
        if not path:
            raise CurationError(field, "give the file's path, such as kernels/tuned.cu")
        if path in self.files:
            raise CurationError(field, f"{path} already exists")

    def _upload_path(self) -> str:
        return self.new_path or str(getattr(self.upload, "name", ""))

    def _upload_text(self) -> str:
        if self.upload is None:
            raise CurationError("upload", "choose a file")
        if self.upload.size > TASK_LIMIT_BYTES:
            mib = TASK_LIMIT_BYTES // 1024**2
            raise CurationError("upload", f"the file is larger than {mib} MiB")
        try:
            return decoded(self.upload.read(), "upload")
        except DataError as error:
            reason = f"the file {self.upload.name!r} {error.reason}"
            raise CurationError("upload", reason) from None


def read_edit(posted: Mapping[str, str], uploads: Mapping[str, Any], files: Any) -> Edit:
    """The form of the workbench; a file that is not there any more is left out.

    "over" is the revision that its writer has seen and wants to replace. A field for a new path
    that was filled counts although Enter sends the form with its first button.
    """
    path = posted.get("path", "")
    action = posted.get("do", "save")
    new_path = posted.get("new_path", "").strip()
    opened, _, line = posted.get("open", "").rpartition("#")
    if action == "rename":
        new_path = posted.get("rename_to", "").strip()
    elif opened:
        action = "open"
    elif action == "save" and new_path:
        action = "add"
    known = path if path in files else ""
    return Edit(
        files=files,
        revision=read_number(posted.get("over") or posted.get("revision", "")),
        path=path if action not in ("rename", "delete") else known,
        text=posted.get("text", "").replace("\r\n", "\n"),  # as a browser sends a line's end
        action=action if known or action not in ("rename", "delete") else "save",
        new_path=new_path,
        upload=uploads.get("upload"),
        opened=opened,
        line=line if line.isdecimal() and len(line) < 8 else "",
    )


def read_number(text: str) -> int:
    """The number of a revision; 0, which none has, for anything else."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0
