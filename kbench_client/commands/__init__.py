"""The commands of `kbench`: one module for those that belong together."""
