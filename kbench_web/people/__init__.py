"""How admins manage accounts: who may sign up, who is an admin, and personal limits."""
