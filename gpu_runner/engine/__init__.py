"""What runs in jails with torch: the oracle, the torch runner, the comparison of outputs."""
