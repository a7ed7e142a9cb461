"""What somebody tries who took over a runner: its Redis login, its HTTPS token, or its host."""
