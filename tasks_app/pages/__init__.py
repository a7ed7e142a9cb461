"""Data that pages and the API show about a task: versions, soundness, history; no HTML."""
