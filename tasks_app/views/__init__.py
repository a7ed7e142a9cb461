"""The pages about tasks, one module a group of them."""
