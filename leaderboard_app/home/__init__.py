"""The first page: leaders of each device, what runs, and how to begin."""
