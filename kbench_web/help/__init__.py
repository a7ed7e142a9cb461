"""Help: the documents as pages, and a search over pages, tasks, authors and submissions."""
