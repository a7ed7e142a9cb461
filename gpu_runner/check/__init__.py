"""`kbench check`: a verdict on a script's kernels, with no site and no task.

`script` makes a task of a file with `ref`, `kernel` and `inputs`, `checking` judges and times its
kernels, and `command` is the command line, which says what came of it.
"""
