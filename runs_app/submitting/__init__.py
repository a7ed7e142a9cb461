"""Submitting, watching, re-running and canceling kernels: form, pages and API.

All submissions pass through `services`, and `quota` enforces limits. People submit from
`workbench`. The page of a submission is `submission_page`; the part of it that changes is `live`,
which takes its rows from `page`, `profile_page` and `pictures`. `shipped` enters the kernels that
come with tasks.
"""
