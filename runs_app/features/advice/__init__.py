"""Language models' advice on a task: requested, stored, and served over the API.

It's advice only, and nothing depends on it.
"""
