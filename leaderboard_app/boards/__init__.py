"""Boards: what counts is ranked, with ties, and shown as a page, over the API and as files.

`query` reads an address, `selectors` knows tasks and devices, and `filtering` finds the rows.
`board` makes a board of them: of `leading` kernels with their `history`, of entries (`best`), of
`groups` with their `spending`, or a `matrix`. `ranking` orders what is ranked. `views` shows a
board as a page, whose columns are in the template, with `charts`; `export` as the records of API
and files. `tags` are boards on other pages; `recent` and `records` are for the first one.
Long answers are `kept`, and usual ones made `ahead` of their readers.
"""
