"""Jobs for hosts that reach no site: a folder carries them there, and what came of them back."""
