"""What pages and the API show of a task, its versions, its soundness and its past; no HTML."""
