"""Builds a source into a library, in a jail without a GPU or network.

`build` compiles into a cache that `eviction` keeps small; `compiler_log` and `vectorization` read
the compiler's messages, `elf` and `binary` what it built.
"""
