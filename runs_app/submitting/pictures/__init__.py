"""Plots of a result: a headline, intervals by workload, and a roofline."""
