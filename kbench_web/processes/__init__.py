"""The programs of an installation: started, watched, and stopped together."""
