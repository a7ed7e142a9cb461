"""Other programs on a device: profilers, the anchor kernel, peaks, and a health check."""
