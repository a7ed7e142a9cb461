"""The pages about submissions, runs and runners."""
