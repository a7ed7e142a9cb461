"""The processes of `manage.py up`."""
