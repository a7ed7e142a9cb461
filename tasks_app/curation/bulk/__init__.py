"""Many tasks at once: checked by runners, or their best kernels evaluated again."""
