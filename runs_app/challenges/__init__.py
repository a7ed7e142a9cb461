"""Challenges: whole agents compete on fixed tasks, each with a budget and a token of its own.

An entry is the bearer of its token: `kbench_web.api_access` asks for it, and `access` says what the
token may do. `settle` takes all steps that time brings; `ingest_events` calls it every few seconds.
`services` makes challenges and enters them, and `figures` says what came of it. The module
`submissions.for_entries` counts evaluations.
"""
