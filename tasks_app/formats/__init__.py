"""The site's interface to `gpu_runner.data.formats`: reads and writes task folders as text.

No code of a task runs here. `soundness_report` reads the findings of a check.
"""
