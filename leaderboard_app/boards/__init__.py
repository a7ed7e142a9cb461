"""Boards: what counts is ranked, with ties, and shown as a page, over the API and as files.

`query` reads an address, and `selectors` knows tasks and devices, and finds the rows.
`board` makes a board of them: of `leading` kernels with their `history`, of entries (`best`), of
`groups` with what they spent, or a `matrix`. `ranking` orders what is ranked. `tables` declares
the columns of each board: `views` shows it as a `page` with `charts`, `api` as JSON and files.
`tags` are boards on other pages; `records` is for the first one.
Nothing is cached: each reader gets what the rows say.
"""
