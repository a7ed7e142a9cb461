"""Takes jobs from Redis, runs each in a process of its own, and sends events."""
