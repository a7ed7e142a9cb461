"""Moves results and runs between sites as files: exports, checks and imports them.

`record` defines what a file contains, `files` reads and writes it as JSON or Parquet, `faults`
finds what is wrong with one, and `export` and `services` convert between files and rows.
`run_faults` and `run_import` do the same for a run.
"""
