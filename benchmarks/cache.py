"""What the forks of a long history cost at the provider: with the prompt cache's breakpoints, and without.

The runtime and its Anthropic provider as they are, against the tests' server of the Messages API, which models the
cache. Both runs send the same requests; the one without breakpoints is what copying a history costs. A token is four
characters. Price in tokens: 1.25 for one written, 0.1 for one read, 1 for others. The phases follow one another; with
forks by calls the parent is asked, too: before them, and to go on. This cache has an entry at once; in the real one,
forks of the same moment may each write the last reply.
"""

from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.places import Place
from benchmarks.results import Row
from ikigai_actors import ActorSystem, AnthropicProvider
from tests.kit.messages_server.cache import Served
from tests.kit.messages_server.server import MessagesServer, Says

HISTORIES = (10_000, 100_000)
"""Tokens of the parent, about."""

COUNTED = "tokens of the parent"

FORKS = 20
TURNS = 25
WRITE, READ = 1.25, 0.1
"""Prices of a token that is written to the cache, and of one that is read from it; 1 is that of any other."""

WORDS = "What was said before is said again, and all who come later have to know of it. "


class Phase(NamedTuple):
    """The requests of one phase of a run, together."""

    name: str
    served: list[Served]

    @property
    def written(self) -> int:
        """Tokens written to the cache."""
        return sum(each.written for each in self.served)

    @property
    def read(self) -> int:
        """Tokens read from the cache."""
        return sum(each.read for each in self.served)

    @property
    def plain(self) -> int:
        """Tokens that have nothing to do with the cache."""
        return sum(each.plain for each in self.served)

    @property
    def price(self) -> float:
        """In tokens at the usual price."""
        return WRITE * self.written + READ * self.read + self.plain


def run(places: list[Place], quick: bool) -> Iterator[Row]:
    """The same tree twice, of each size; the database makes no difference."""
    for history in HISTORIES[:1] if quick else HISTORIES:
        cached, naive = _phases(history, prompt_cache=True), _phases(history, prompt_cache=False)
        for ours, without in zip(cached, naive, strict=True):
            for figure, value in (
                ("tokens written", ours.written),
                ("tokens read", ours.read),
                ("other tokens", ours.plain),
            ):
                yield Row(f"{figure}: {ours.name}", "ikigai", "", history, COUNTED, value, "tokens")
            yield Row(
                f"price: {ours.name}", "ikigai", "", history, COUNTED, round(ours.price), "tokens",
                "without breakpoints", round(without.price),
            )  # fmt: skip


def _phases(history: int, prompt_cache: bool) -> list[Phase]:
    """Grow a parent, fork it by command, then by calls of one reply."""
    text = (WORDS * (history // 10))[: 4 * history // (2 * TURNS - 1)]
    with MessagesServer() as server:
        provider = AnthropicProvider(base_url=server.url, api_key="none", prompt_cache=prompt_cache)
        with ActorSystem.open("sqlite:///:memory:", provider) as system:
            root = system.root
            root.configure(system="You are thorough.")
            for _ in range(TURNS):
                server.script.append(Says.text(text))
                root.prompt(text).get()
            grown = len(server.served)
            for child in [root.fork(f"Do part {part} of it.") for part in range(FORKS)]:
                child.reply()
            commanded = len(server.served)
            server.script.append(_forking())
            root.prompt("Now divide it among copies of yourself.").get()
            for child in root.children():
                child.reply()
            return [
                Phase(f"the parent's {TURNS} turns", server.served[:grown]),
                Phase(f"{FORKS} forks by command", server.served[grown:commanded]),
                Phase(f"{FORKS} forks by calls", server.served[commanded:]),
            ]


def _forking() -> Says:
    """A reply that forks its agent many times."""
    uses = [
        {"type": "tool_use", "id": f"toolu_{part}", "name": "fork", "input": {"prompt": f"Do part {part} of it."}}
        for part in range(FORKS)
    ]
    return Says(({"type": "text", "text": "I divide it."}, *uses), stop_reason="tool_use")
