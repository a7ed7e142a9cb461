"""What pages and the API show of a task, its versions and its soundness; no HTML."""
