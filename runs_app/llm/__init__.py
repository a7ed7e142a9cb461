"""Language models behind OpenAI-compatible endpoints: calls, their failures and their prices."""
