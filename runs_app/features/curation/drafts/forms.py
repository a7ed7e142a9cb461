"""Forms of the pages on which tasks are curated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile

from gpu_runner.data.codec import DataError
from runs_app.features.curation.drafts.uploads import UNPACKED_LIMIT_BYTES, Upload, read_upload


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
        error_messages={"required": "Choose a zip file, or the files of a task."},
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
