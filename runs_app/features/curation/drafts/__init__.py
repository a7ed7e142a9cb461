"""Drafts of tasks: uploaded or copied, edited, sent to review, published or closed.

`services` are the steps, `uploads` reads archives, `files` says what is kept, `page` and `forms`
what the workbench shows and sends.
"""
