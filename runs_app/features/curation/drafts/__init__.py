"""Drafts of tasks: uploaded or copied, edited, sent to review, published or closed.

`services` are the steps, `uploads` reads archives, `refusals` says when no more may be, `page` and
`edit` what the workbench shows and sends.
"""
