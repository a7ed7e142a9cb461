"""For programs: this site's version of the client, and a guide for agents."""
