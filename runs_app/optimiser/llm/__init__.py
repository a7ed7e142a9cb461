"""Language models behind OpenAI-compatible endpoints: calls, their failures and their prices.

`client` makes one call of one or more `attempt`s; `wire` is the HTTP under it, `reading` reads the
answer. `failure` says what went wrong, as one of `errors`; `metering` and `tokens` count.
"""
