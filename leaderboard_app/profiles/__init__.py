"""Profiles: what agents, people and language models have achieved."""
