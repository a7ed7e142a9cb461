"""Task, editor and console on one page: a kernel is begun, submitted and watched there."""
