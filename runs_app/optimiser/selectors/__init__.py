"""Questions about runs, their settings, their money, and the language models that they call."""
