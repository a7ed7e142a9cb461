"""What the site gives to programs: the client that fits it, and a guide for agents."""
