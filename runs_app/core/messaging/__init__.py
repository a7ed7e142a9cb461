"""How the site speaks with others: jobs go down, events come up, pages are told.

`orders` queues jobs for runners and answers them, `queues` queues the work of the site's own
workers, and `stream` reads what runners report. `broadcast` tells the sockets, which listen
through `hub`, and reads what they have missed.
"""
