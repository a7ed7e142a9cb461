"""Tasks, their versions, and how they are curated."""
