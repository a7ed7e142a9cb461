"""Two to five submissions, agents or language models side by side, against one that is pinned."""
