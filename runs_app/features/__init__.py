"""Features: Django apps that a site can run without."""
