"""How the site speaks with others: jobs go down, events come up, pages are told.

`queues` puts jobs into RQ for runners and for our own workers, `stream` reads what runners report,
`broadcast` tells the sockets.
"""
