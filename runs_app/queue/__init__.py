"""What waits on each device, why, and how long; which runners and compilers there are."""
