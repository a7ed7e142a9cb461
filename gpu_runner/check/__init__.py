"""`kbench check`: a verdict on a script's kernels, without a site or a task.

`script` turns a file with `ref`, `kernel` and `inputs` into a task, `checking` judges and times its
kernels, and `command` is the command line, which prints the results.
"""
