"""Make the login with which a runner on one of the site's own hosts reaches its Redis."""

from __future__ import annotations

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone
from redis.exceptions import RedisError

from runs_app.core.errors import SubmissionError
from runs_app.core.runners.tokens import grant_login, is_local, local_runner
from runs_app.models import RunnerToken


class Command(BaseCommand):
    """`manage.py runner_login NAME`, or `--local` for the runners of `make up`."""

    help = (
        "Print the REDIS_URL of a runner that was added on the Operate page. Each call creates a "
        "new password and invalidates the previous one. Use this for hosts that you control; all "
        "others use --site and --token."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", nargs="?", default="", help="the runner's name")
        parser.add_argument(
            "--local",
            action="store_true",
            help="for runners on the site's own host; creates the runner if it doesn't exist",
        )

    def handle(self, *args: object, **options: object) -> None:
        try:
            self.stdout.write(grant_login(self._token(options)))
        except (RedisError, SubmissionError) as error:
            raise CommandError(str(error)) from None

    def _token(self, options: dict[str, object]) -> RunnerToken:
        if options["local"]:
            return local_runner(now=timezone.now())
        tokens = RunnerToken.objects.filter(revoked_at=None)
        found = tokens.filter(name=options["name"]).first()
        if found is None:
            known = ", ".join(tokens.values_list("name", flat=True)) or "none"
            words = f"there is no runner {options['name']!r}; add it on the Operate page."
            raise CommandError(f"{words} Known: {known}")
        if is_local(found):
            raise CommandError(
                f"`make up` creates the login for {found.name}, and a new one would disconnect this"
                " host's runners; add another runner on the Operate page"
            )
        self.stderr.write(f"Earlier logins for {found.name} no longer work.")
        return found
