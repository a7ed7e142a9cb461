"""Results and runs travel between sites, as files: exported, read, checked and imported.

`record` says what a file holds, `files` reads and writes it as JSON or Parquet, `faults` says what
is wrong with one, `export` and `services` go between files and rows. `run_faults` and
`run_import` are the same for a run.
"""
