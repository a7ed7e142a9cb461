"""From a source to a library, in a jail without GPU and network.

`build` compiles into a cache that `eviction` keeps small; `compiler_log` and `vectorization` read
what the compiler says, `elf` and `binary` what came of it.
"""
