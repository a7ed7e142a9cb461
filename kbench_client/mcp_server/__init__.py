"""`kbench mcp`: the tools of an agent, and how the protocol serves them."""
