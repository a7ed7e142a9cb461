"""`kbench mcp`: an agent's tools, and how the protocol serves them."""
