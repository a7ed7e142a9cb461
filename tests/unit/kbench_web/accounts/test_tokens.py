"""Tokens are shown once, stored as digests, and made on the command line."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import CommandError, call_command

from kbench_web.accounts.tokens import find_token
from kbench_web.models import ApiToken
from tests import factories as make

pytestmark = pytest.mark.django_db


def test_a_token_is_found_by_its_text_which_is_not_stored() -> None:
    text = make.make_token(make.make_user())
    token = ApiToken.objects.get()
    assert find_token(text, make.NOW) == token
    assert find_token(text + "x", make.NOW) is None
    stored = " ".join(str(value) for value in ApiToken.objects.values()[0].values())
    assert text not in stored
    assert text[9:] not in stored
    for seconds, recorded in ((0, 0), (30, 0), (90, 90)):
        find_token(text, make.later(seconds))
        assert ApiToken.objects.get().last_used_at == make.later(recorded)


def test_the_command_prints_the_token_alone() -> None:
    make.make_user(username="ada")
    out, err = io.StringIO(), io.StringIO()
    call_command("create_token", "ada", "--days", "2", "--scope", "read", stdout=out, stderr=err)
    token = ApiToken.objects.get()
    assert find_token(out.getvalue().strip(), make.NOW) == token
    assert token.scopes == ["read"]
    remaining = token.expires_at - datetime.now(UTC)
    assert timedelta(days=1) < remaining <= timedelta(days=2)
    assert "expires on" in err.getvalue()


def test_the_command_refuses_unknown_people_and_no_time() -> None:
    with pytest.raises(CommandError, match="no active account 'nobody'"):
        call_command("create_token", "nobody")
    make.make_user(username="ada")
    with pytest.raises(CommandError, match="at least 1"):
        call_command("create_token", "ada", "--days", "0")
    assert not ApiToken.objects.exists()
