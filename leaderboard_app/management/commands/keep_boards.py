"""Make the boards that everybody opens again and again, so that no reader waits for them."""

from __future__ import annotations

import logging
import signal
from threading import Event
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db import InterfaceError, OperationalError, close_old_connections, connection

from leaderboard_app.boards.ahead import Ahead

log = logging.getLogger(__name__)

_PAUSE_S = 2.0
"""A board that lost a result stands anew after so long, and its making."""


class Command(BaseCommand):
    """`manage.py keep_boards`: runs until SIGTERM or SIGINT."""

    help = "Make usual boards before readers ask for them, until stopped; run one for each site."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the option."""
        parser.add_argument("--once", action="store_true", help="make all of them, and end")

    def handle(self, *args: Any, **options: Any) -> None:
        """Make what is due, and wait; wait out the absence of the database."""
        stopped = Event()
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, lambda *_: stopped.set())
        ahead = Ahead()
        while not stopped.is_set():
            try:
                ahead.step()
            except (OperationalError, InterfaceError) as error:
                log.warning("the database is away, trying again: %s", error)
                connection.close()
            if options["once"]:
                return
            close_old_connections()
            stopped.wait(_PAUSE_S)
