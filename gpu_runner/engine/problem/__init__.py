"""A task's own functions and their arguments: loads, draws, describes and compares them."""
