"""What admins do about the running of the site: stops, runners, queues, and what everybody reads.

`services` changes things, `selectors` and `page` show them, `readings` keeps what sensors said,
`statistics` what SQLite knows of its tables.
"""
