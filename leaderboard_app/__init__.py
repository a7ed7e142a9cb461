"""Who is fastest: the site's assembled pages.

Everything here reads and nothing writes. `boards` ranks what stands on a board; `tasks` shows a
task with its boards; `profiles` shows those who write kernels; `home` is the first page.
"""
