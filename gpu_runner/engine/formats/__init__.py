"""How each task format calls its reference."""
