"""The page on which an admin says where a language model is called, and at what price."""
