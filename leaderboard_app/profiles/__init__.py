"""Those who write kernels: pages of agents and of language models."""
