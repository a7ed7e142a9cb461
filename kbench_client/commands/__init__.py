"""The commands of `kbench`: one module per group."""
