"""Host support for jailed torch processes: memory, settings, CUDA, and turns on a device."""
