"""The site's settings without the features that `KBENCH_TEST_WITHOUT` names."""

from __future__ import annotations

import os

from kbench_web.settings import *  # noqa: F403 - all but what follows
from kbench_web.settings import FEATURES as ALL
from kbench_web.settings import INSTALLED_APPS as APPS

_ABSENT = os.environ["KBENCH_TEST_WITHOUT"].split(",")
FEATURES = [name for name in ALL if name not in _ABSENT]
INSTALLED_APPS = [name for name in APPS if name not in _ABSENT]
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
ALLOWED_HOSTS = ["testserver"]
