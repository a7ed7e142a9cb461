"""The part of a page on which admins ask language models about a task."""
