"""Settings, addresses, sockets, the API's root, accounts, and `manage.py up`."""
