"""Messaging: jobs go out to runners, events come back, and pages are notified.

`orders` queues jobs for runners and answers them, `queues` queues the work of the site's own
workers, and `stream` reads what runners report. `broadcast` tells the sockets, which listen
through `hub`, and reads the events that they missed.
"""
