"""Backups: everything a site can't recreate, saved to one file and restored from it.

`services` makes and restores them, `archive` knows the file's format. `sqlite` and `postgresql`
copy a database while others write to it.
"""
