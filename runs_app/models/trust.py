"""Words for what persons and audits say of a result, beside its verdict."""

from __future__ import annotations

from django.db import models


class Quarantine(models.TextChoices):
    """Whether a person must decide, or has decided, that a suspicious result counts."""

    NONE = "none", "No suspicion"
    OPEN = "open", "In quarantine"
    CLEARED = "cleared", "Cleared"
    REJECTED = "rejected", "Rejected"


class Audited(models.TextChoices):
    """What audits say of a submission's place on a device's board."""

    NONE = "none", "Not audited"
    WAITING = "waiting", "Audit under way"
    PASSED = "passed", "Verified"
    FAILED = "failed", "Audit failed"
    SUSPICIOUS = "suspicious", "Audit in quarantine"
    INCONCLUSIVE = "inconclusive", "Audit without a result"
