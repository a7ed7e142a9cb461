"""Commands of manage.py about boards."""
