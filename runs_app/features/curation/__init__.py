"""Lets people write tasks and have them checked, and admins decide on them.

People write `drafts`; `checks` find their faults; `decisions` publish, label and retire.
Drafts are rows of `tasks_app`, because checks and versions refer to them.
"""
