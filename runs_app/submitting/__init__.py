"""Kernels are entered, watched, measured again and canceled: form, pages and API.

`services` is the way in for all, and `quota` refuses what is too much. `workbench` is the page
that people submit from. The page of a submission is `submission_page`; the part of it that changes
is `live`, which takes its rows from `page`, `profile_page` and `pictures`. `shipped` enters the
kernels that come with tasks.
"""
