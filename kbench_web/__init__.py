"""The site around the apps: settings, addresses, sockets, accounts, and `manage.py up`."""
