"""What admins decide about tasks: public, retired, labelled, contaminated; and what was done.

`many` does it to several tasks at once, with a preview; `audit_words` tells of the past.
"""
