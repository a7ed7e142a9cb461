"""How each format of a task calls its reference."""
