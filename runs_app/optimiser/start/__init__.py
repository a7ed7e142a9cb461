"""The form that starts a run, with its strategy's parameters and an estimate."""
