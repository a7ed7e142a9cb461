"""Ranks the results that count on boards, with ties, for pages, the API and files.

`query` reads a URL, and `selectors` knows tasks and devices, and finds the rows.
`board` turns them into a board: of `leading` kernels with their `history`, of entries (`best`), of
`groups` with their costs, or a `matrix`. `ranking` puts rows in order. `tables` declares the
columns of each board: `views` shows it as a `page` with `charts`, `api` as JSON and files.
`tags` are boards on other pages; `records` is for the home page.
Nothing is cached: each reader sees the current rows.
"""
