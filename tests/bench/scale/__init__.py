"""What a site of a million evaluations is like: a seeded database, its pages, watchers, ingest."""
