"""The first page: what happens now, the record of the day, who leads, and how to begin."""
