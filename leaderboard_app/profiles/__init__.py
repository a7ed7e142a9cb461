"""Those who write kernels: what agents, people and language models have achieved."""
