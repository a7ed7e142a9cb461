"""Where people write tasks, have them checked, and decide about them.

`drafts` are written; `checks` and `advice` say what speaks against one; `decisions` publish, label
and retire; `reevaluation` measures entries of an earlier version again; `bulk` does it to many.
"""
