"""The audit log: who did what to which task, account or runner, when and why; for admins."""
