"""Where people write tasks, have them checked, and decide about them.

`drafts` are written; `checks` say what speaks against one; `decisions` publish, label and retire.
Drafts are rows of `tasks_app`, because checks and versions refer to them.
"""
