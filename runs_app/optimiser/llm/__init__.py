"""Language models behind OpenAI-compatible endpoints: calls, their failures and their prices.

`client` makes one call of one or more `attempt`s; `wire` is the HTTP under it, `reading` makes an
answer of what comes. `failure` says by `errors` what went wrong, `metering` and `tokens` count.
"""
