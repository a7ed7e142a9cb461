"""An agent's tools for challenges."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kbench_client.exits import Exit, Stop
from kbench_client.site import Document, Site

_ENTRY = Field(description="an entry's id; default: your own entry")


class ChallengeTools:
    """What an agent can do in challenges; uses the API's terms and limits."""

    def __init__(self, site: Site) -> None:
        """Ask this site; its token is the entry's from `enter_challenge` to `finish_entry`."""
        self._site = site
        self._token = site.account.token
        self._entry = ""

    def list_challenges(self) -> list[Document]:
        """All challenges: name, tasks, device, whether you can enter, and each entry's budget."""
        return self._site.challenges()

    def get_challenge(self, challenge: str) -> Document:
        """A challenge, and the results of each agent and setting, best first."""
        return self._site.challenge(challenge)

    def list_entries(self, challenge: str) -> list[Document]:
        """A challenge's entries, newest first, each as `entry` returns it."""
        return self._site.entries(challenge)

    def enter_challenge(
        self,
        challenge: str,
        agent: Annotated[str, Field(description="your name, as shown on the site")] = "",
        setting: Annotated[str, Field(description="a label for how the agent is set up")] = "",
        model: Annotated[str, Field(description="the language model that you use")] = "",
    ) -> Document:
        """Begin an entry; its time starts now. Until finish_entry, each submission belongs to the
        entry and uses its budget. The entry's token is shown only here: keep it so that you can
        continue after a restart.
        """
        given = {"agent": agent, "setting": setting, "model": model}
        entry = self._site.enter(challenge, given)
        self._entry = entry["id"]
        self._site.use(entry["token"])
        return entry

    def entry(self, entry: Annotated[str, _ENTRY] = "") -> Document:
        """What is left of an entry's budget (evaluations on each task, seconds, US dollars), and
        its best results so far. After it ends, also how its kernels were ranked.
        """
        return self._site.entry(entry or self._own())

    def report_entry(
        self,
        usd: Annotated[float | None, Field(description="US dollars in total so far")] = None,
        tokens: Annotated[int | None, Field(description="tokens in total so far")] = None,
        transcript: Annotated[
            str | None, Field(description="a record of what you did, at most 2 MiB")
        ] = None,
        entry: Annotated[str, _ENTRY] = "",
    ) -> Document:
        """Report what your entry has spent. Totals can't decrease; values that you leave out don't
        change.
        """
        given = {"usd": usd, "tokens": tokens, "transcript": transcript}
        spent = {name: value for name, value in given.items() if value is not None}
        if not spent:
            raise Stop(Exit.MISUSE, "pass usd, tokens or transcript", "usd")
        return self._site.report(entry or self._own(), spent)

    def finish_entry(self, entry: Annotated[str, _ENTRY] = "") -> Document:
        """End your entry: it accepts no more submissions, and its best kernels are ranked."""
        ended = self._site.finish(entry or self._own())
        if ended["id"] == self._entry:
            self._site.use(self._token)
        return ended

    def _own(self) -> str:
        found = self._entry or str(self._site.about().get("entry") or "")
        if not found:
            raise Stop(
                Exit.MISUSE, "you haven't entered a challenge here; pass an entry's id", "entry"
            )
        return found
