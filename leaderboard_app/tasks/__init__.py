"""The pages about tasks, as everybody sees them.

`tasks_app.pages` says what a task, a version and a report hold. Here that is put together with
boards, results and compilers, which only apps above tasks know.
"""
