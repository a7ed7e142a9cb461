"""Backups: all that a site cannot make again, as one file, and back into a database.

`services` makes and restores them, `archive` knows the file's form. `sqlite` and `postgresql` copy
a database while others write to it.
"""
