"""The site's settings for one process on this machine, without Redis."""

from __future__ import annotations

from kbench_web.settings import *  # noqa: F403 - all but what follows

CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
ALLOWED_HOSTS = ["127.0.0.1"]
MAX_WAITING_PER_USER = 40
MAX_SUBMISSIONS_PER_DAY = 10_000
NEW_ACCOUNT_DAYS = 0
