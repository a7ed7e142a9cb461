"""The site's settings, but that passwords are hashed in no time: many tests sign up."""

from __future__ import annotations

from kbench_web.settings import *  # noqa: F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
