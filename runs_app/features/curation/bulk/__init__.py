"""Many tasks at once: checked by runners."""
