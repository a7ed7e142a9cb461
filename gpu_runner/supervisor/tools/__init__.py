"""What else runs on a device: profilers, the anchor kernel, peaks, and a look at its health."""
