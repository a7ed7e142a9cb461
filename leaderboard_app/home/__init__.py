"""The home page: what's happening, the record of the day, who leads, how to start."""
