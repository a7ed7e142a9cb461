"""The page where admins enter language models' endpoints and prices."""
