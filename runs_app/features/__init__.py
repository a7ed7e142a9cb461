"""Features: Django apps of their own. A site runs without any of them."""
