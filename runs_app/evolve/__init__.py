"""The optimiser: pure Python, seeded, without Django."""
