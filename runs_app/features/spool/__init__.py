"""Jobs for hosts that can't reach a site: a folder carries jobs there and results back."""
