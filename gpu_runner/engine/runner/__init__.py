"""Runs a submission's or a baseline's functions over tensors: bytes in, bytes out."""
