"""The pages about tasks that everybody sees.

`tasks_app.pages` knows what a task, a version and a report contain. This package adds boards,
results and compilers, which only apps above tasks know.
"""
