"""Tasks: what kernels are written for, their versions, and how they become public.

`formats` reads and writes folders, `publishing` makes versions public, `pages` shows them, and
`disclosure` decides what people may see.
"""
