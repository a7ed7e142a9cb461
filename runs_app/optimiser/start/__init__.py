"""The form that starts a run, with its strategy's parameters, and the estimate beside it."""
