"""What people send about drafts: an upload, or from the workbench a text and what to do with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile

from gpu_runner.data.codec import DataError
from gpu_runner.data.formats.text import TASK_LIMIT_BYTES, decoded
from runs_app.features.curation.drafts.uploads import UNPACKED_LIMIT_BYTES, Upload, read_upload
from tasks_app.errors import CurationError


class _SeveralFiles(forms.ClearableFileInput):
    allow_multiple_selected = True


class _FilesField(forms.FileField):
    """Several files, checked each as one file would be."""

    widget = _SeveralFiles

    def clean(self, data: Any, initial: Any = None) -> list[UploadedFile[Any]]:
        chosen = data if isinstance(data, list | tuple) else [data]
        if not chosen:
            chosen = [None]
        return [super(_FilesField, self).clean(each, initial) for each in chosen]


class UploadForm(forms.Form):
    """A zip, or several files; `cleaned_data["found"]` are the tasks in it, as texts."""

    upload = _FilesField(
        allow_empty_file=True,
        error_messages={"required": "Choose a zip file, or a task's files."},
    )

    def __init__(self, *args: Any, refusal: str = "", **kwargs: Any) -> None:
        """With a `refusal`, what was uploaded is not read: reading may take seconds."""
        super().__init__(*args, **kwargs)
        self._refusal = refusal

    def clean(self) -> dict[str, Any]:
        """Read the upload; what is wrong with it is said beside the field."""
        values = super().clean() or {}
        if self._refusal:
            self.add_error("upload", self._refusal)
            return values
        chosen: Sequence[UploadedFile[Any]] = values.get("upload", ())
        if not chosen:
            return values
        if sum(file.size or 0 for file in chosen) > UNPACKED_LIMIT_BYTES:
            mib = UNPACKED_LIMIT_BYTES // 1024**2
            self.add_error("upload", f"The files together are larger than {mib} MiB.")
            return values
        try:
            uploads = [Upload(name=file.name or "", content=file.read()) for file in chosen]
            values["found"] = read_upload(uploads)
        except DataError as error:
            self.add_error("upload", _sentence(error))
        return values


def _sentence(error: DataError) -> str:
    """The fault; of the upload as a whole, or of the file that it names."""
    return f"The files {error.reason}." if error.field == "files" else f"{error}."


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
            raise CurationError(field, "enter the file's path, such as kernels/tuned.cu")
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
