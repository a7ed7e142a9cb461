"""Files of results that other sites measured, and that were imported here."""

from __future__ import annotations

from django.db import models

from runs_app.models import Submission


class ResultImport(models.Model):
    """One imported file; `site`, `note` and `exported_at` are the file's own words.

    `results` counts what this file brought: what was known before is not in it.
    """

    site = models.CharField(max_length=40)
    note = models.CharField(max_length=500, blank=True)
    digest = models.CharField(max_length=64, unique=True)  # SHA-256 of what it says
    results = models.PositiveIntegerField()
    exported_at = models.DateTimeField()
    imported_at = models.DateTimeField()

    class Meta:
        ordering = ("-imported_at", "-pk")

    def __str__(self) -> str:
        return self.site


class ImportedSubmission(models.Model):
    """A submission that a file brought from another site; with the file it goes as well."""

    submission = models.OneToOneField(
        Submission, on_delete=models.CASCADE, primary_key=True, related_name="imported"
    )
    result_import = models.ForeignKey(
        ResultImport, on_delete=models.CASCADE, related_name="submissions"
    )

    def __str__(self) -> str:
        return str(self.submission_id)[:8]
