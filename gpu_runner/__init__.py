"""The evaluation engine and the daemon; no Django, no database."""
