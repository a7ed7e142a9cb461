"""Notifies people: notices on the site, Atom feeds, signed webhooks, and e-mail.

`hooks` turns what happens into notices, `services` stores them, `delivery` sends them, and
`addresses` keeps webhooks from addresses that are not public.
"""
