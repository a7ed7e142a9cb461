"""The site's way to `gpu_runner.data.formats`: tasks as texts, read from and written to folders.

Nothing of a task is executed here. `soundness_report` reads what a check has found.
"""
