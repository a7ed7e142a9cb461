"""The site around the apps: settings, URLs, sockets, accounts, and `manage.py up`."""
