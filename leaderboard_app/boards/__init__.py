"""Boards: what counts is ranked, with ties, and shown as a page, over the API and as files.

`query` reads an address, and `selectors` asks the database for the rows, which are `Entry` and
`Group` of `ranking`; that orders them. `views` shows them as a page, whose columns are in the
template, and `export` as the records of API and files. `tags` are boards on other pages.
"""
