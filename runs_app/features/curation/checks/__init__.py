"""The part of a draft's page that has it checked and its kernels tried, and what came."""
