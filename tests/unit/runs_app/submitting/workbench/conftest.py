"""Somebody who works at the workbench."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests import factories


@pytest.fixture
def ada() -> User:
    """Somebody with an account."""
    return factories.make_user(username="ada")


@pytest.fixture
def signed_in(client: Client, ada: User) -> Client:
    """Her browser."""
    client.force_login(ada)
    return client
