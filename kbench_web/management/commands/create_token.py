"""Create a token of the API."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from kbench_web.accounts.tokens import create_token
from kbench_web.models import ApiToken


class Command(BaseCommand):
    """`manage.py create_token USER`."""

    help = "Create an API token for USER and print it. It is shown only once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", metavar="USER", help="name of an existing account")
        parser.add_argument("--name", default="command line", help="what the token is for")
        parser.add_argument("--days", type=int, default=90, help="days until it expires")
        parser.add_argument(
            "--scope",
            action="append",
            choices=ApiToken.Scope.values,
            help="scope of the token; repeat for several; default: all scopes",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["user"], is_active=True).first()
        if user is None:
            raise CommandError(f"there is no active account {options['user']!r}")
        if options["days"] < 1:
            raise CommandError("--days must be at least 1")
        token, text = create_token(
            user=user,
            name=options["name"],
            scopes=options["scope"] or ApiToken.Scope.values,
            lifetime=timedelta(days=options["days"]),
            now=timezone.now(),
        )
        self.stdout.write(text)
        scopes = ", ".join(token.scopes)
        self.stderr.write(f"Allows {scopes}; expires on {token.expires_at:%Y-%m-%d}.")
