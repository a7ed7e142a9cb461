"""Kernels are entered, watched, measured again and cancelled: form, pages and API.

`services` is the way in for all, and `refusals` refuses what is too much. `page` and
`profile_page` say what the page of a result shows, `shipped` enters the kernels that come with
tasks.
"""
