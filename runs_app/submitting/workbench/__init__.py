"""Task, editor and console on one page, to write, submit and watch a kernel."""
