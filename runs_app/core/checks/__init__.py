"""Task checks by runners: requested, queued, and finished with a soundness report."""
