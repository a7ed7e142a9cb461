"""Pages that show who is fastest, put together from all apps.

Everything here only reads. `boards` ranks results; `tasks` shows a task with its boards;
`profiles` shows the authors of kernels; `home` is the home page.
"""
