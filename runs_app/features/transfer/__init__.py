"""Results travel between sites, as one file: exported, read, checked and imported.

`record` says what a file holds, `files` reads and writes it as JSON or Parquet, `faults` says what
is wrong with one, `export` and `services` go between files and rows, and `shipped` finds the
files that come with kbench.
"""
