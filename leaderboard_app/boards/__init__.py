"""Boards: what counts is ranked, with ties, and shown as a page, over the API and as files.

`query` reads an address, `selectors` asks the database, `ranking` orders, `views` and `api` answer.
"""
