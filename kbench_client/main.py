"""`kbench`: its commands, their options, and how they end."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from kbench_client import config, version
from kbench_client.commands import (
    challenge,
    export,
    local,
    login,
    mcp,
    reading,
    running,
    submitting,
    tasks,
    tracing,
)
from kbench_client.exits import Exit, Stop
from kbench_client.output import Output
from kbench_client.site import Site

_EPILOG = """exit status: 0 success; 1 a verdict other than CORRECT; 2 a usage error, or the
site rejected the request; 3 the site can't be reached, or failed; 4 a missing or invalid token;
5 timed out; 6 below --min-speedup; 7 a limit is reached, so try again later. KBENCH_URL and
KBENCH_TOKEN override what `kbench login` stores."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit status."""
    words = sys.argv[1:] if arguments is None else arguments
    try:
        options = _parsed(words)
    except Stop as error:
        return Output(as_json="--json" in words).stop(error)
    output = Output(as_json=options.json, is_quiet=options.quiet)
    site = None
    try:
        file = config.path()
        if config.is_open_to_others(file):
            output.warn(f"other users can read {file}; run chmod 600 on it")
        account = config.account()
        if options.url:
            account = config.account({**os.environ, "KBENCH_URL": options.url})
        site = Site(account, warn=output.warn)
        return int(options.run(options, site, output))
    except Stop as error:
        return output.stop(error)
    except KeyboardInterrupt:
        return output.stop(Stop(Exit.TIME_OVER, "interrupted; what you submitted continues"))
    except BrokenPipeError:
        sys.stderr.close()
        return int(Exit.GOOD)
    finally:
        if site is not None:
            site.close()


def _parsed(words: Sequence[str]) -> argparse.Namespace:
    """The options; what a command does not know is told with that command's own usage."""
    options, unknown = _parser().parse_known_args(words)
    if unknown:
        options.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    return options


class _Parser(argparse.ArgumentParser):
    """Tells wrong use as every command tells it."""

    def error(self, message: str) -> NoReturn:
        """Print how it is used; raises `Stop`."""
        self.print_usage(sys.stderr)
        raise Stop(Exit.MISUSE, message)


def _parser() -> _Parser:
    shared = _Parser(add_help=False)
    shared.add_argument(
        "--json", action="store_true", help="print one JSON document on standard output"
    )
    shared.add_argument(
        "--quiet", action="store_true", help="don't show progress on standard error"
    )
    shared.add_argument("--url", default="", help="site to use instead of the stored one")
    parser = _Parser(
        prog="kbench", description="Submit, measure and compare kernels.", epilog=_EPILOG
    )
    parser.add_argument("--version", action="version", version=f"kbench {version() or 'unknown'}")
    known = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, words: str) -> argparse.ArgumentParser:
        added = known.add_parser(
            name, help=words, description=words, epilog=_EPILOG, parents=[shared]
        )
        added.set_defaults(parser=added)
        return added

    on_site = (login, tasks, submitting, reading, tracing, running, export, challenge)
    for module in (*on_site, local, mcp):
        module.add(command)
    return parser


if __name__ == "__main__":
    sys.exit(main())
