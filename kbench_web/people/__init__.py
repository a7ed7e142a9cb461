"""What admins do about accounts: who may sign up, who is an admin, how much somebody may use."""
