"""What a jailed process with torch needs from its host: memory, settings, CUDA, and quiet."""
