"""Prints the logs of agents from the database: the stored messages, and new ones as they come."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from time import localtime, strftime
from typing import Any

from ikigai_actors.agent.subscriptions import HostEnded
from ikigai_actors.behaviour.book import Book
from ikigai_actors.behaviour.listing import books_of, summary_of, verdict_lines
from ikigai_actors.reach.agent_lists import some_agents
from ikigai_actors.reach.following import CommitFeed, commits_of
from ikigai_actors.reach.notebooks import notebooks_of
from ikigai_actors.reach.scrollback import Scrollback
from ikigai_actors.reach.views import scrollback_of
from ikigai_actors.records.agents.registry import AgentRecord, Died
from ikigai_actors.records.messages.messages import Message
from ikigai_actors.store.hosts.rows import HostRecord
from ikigai_actors.system.host_events import host_events
from ikigai_actors.system.remote.client import Client
from ikigai_actors.verbs.text.colours import Coloured, coloured, meaning_of_death, meaning_of_message
from ikigai_actors.verbs.text.harmless import as_json
from ikigai_actors.verbs.text.hosts import enumerated, host_ended
from ikigai_actors.verbs.text.pages import NameOf, by_whom, message_words
from ikigai_actors.verbs.text.rows import as_row

_Tell = Callable[[str], object]
_Show = Callable[[Coloured], object]

AT_ONCE = 500
"""Messages that are read at once."""

MOST_OF_A_BOOK = 20
"""The most messages of an experiment's notebook that are shown at each end, and the most verdicts of one message."""

_INDENT = " " * 10


class LogPrinter:
    """Prints messages and deaths of agents, as lines or as JSON.

    Every line of a text but its first is indented, so no text looks like the next message.
    """

    def __init__(self, client: Client, show: _Show, json: bool) -> None:
        self._client, self._show, self._json = client, show, json
        self._known: dict[str, AgentRecord] = {}
        self.books: Mapping[str, Book] = {}
        """The books of experiments that are known, by uuid: their verdicts are shown with the prompts."""

    def print(self, news: Message | Died) -> None:
        """Print one message or death."""
        record = self._record(news.agent_uuid)
        if self._json:
            self._show(Coloured(as_json(_as_object(record, news))))
        else:
            self._show(_as_text(record, news, self.books.get(news.agent_uuid), self._client.label))

    def _record(self, uuid: str) -> AgentRecord:
        if uuid not in self._known:
            self._known[uuid] = self._client.get(uuid)
        return self._known[uuid]


def _as_object(record: AgentRecord, news: Message | Died) -> dict[str, Any]:
    about = {"name": record.name, "label": record.short}
    if isinstance(news, Died):
        return {"event": "died", "agent_uuid": record.uuid, **about, "cause": news.cause, "reason": news.reason}
    return {"event": "message", **about, **as_row(news)}


def _as_text(record: AgentRecord, news: Message | Died, book: Book | None, called: NameOf) -> Coloured:
    if isinstance(news, Died):
        death = f"{record.short} is dead: {' '.join((news.reason or news.cause).split())}"
        return coloured(" " * 10, (death, meaning_of_death(news.cause)))
    when = strftime("%H:%M:%S", localtime(news.created_at / 1000))
    lines = verdict_lines(book, news) if book is not None else []
    if len(lines) > MOST_OF_A_BOOK:
        lines = [*lines[:MOST_OF_A_BOOK], f"… {len(lines) - MOST_OF_A_BOOK:,} more verdicts"]
    first, *rest = lines or message_words(news, called).entry.split("\n")
    said = f"  {first}{by_whom(news)}".rstrip()
    kind = f"{news.kind:<11}" if said else news.kind
    said = "\n".join([said, *(f"{_INDENT}{line}".rstrip() for line in rest)])
    return coloured(f"{when}  {record.short}  {news.id:>4}  ", (kind, meaning_of_message(news)), said)


def show_log(
    database: str | None, agent: str, *, inherited: bool, last: int | None, follow: bool, json: bool, show: _Show,
    notice: _Tell,
) -> None:  # fmt: skip
    """Print an agent's log; with ``follow``, also new messages until the agent is dead.

    Raises what `Client.open` and `Client.find` do, and `HistoryError` when its rows are wrong.
    """
    with Client.open(database) as client:
        record = client.find(agent)
        with commits_of(client, [record.uuid]) as feed:
            printer = LogPrinter(client, show, json)
            scrollback, head = scrollback_of(client, record.uuid), feed.place(record.uuid)
            start = 0 if inherited else record.fork_message_id
            first = start if last is None else max(start, head - last)
            printer.books = books = books_of(notebooks_of(client, [record]))
            folds = bool(books) and last is None and not (json or follow) and head - first > 3 * MOST_OF_A_BOOK
            if folds:
                _print(scrollback, printer, first, first + MOST_OF_A_BOOK)
                left = head - first - 2 * MOST_OF_A_BOOK
                left_out = f"{left:,} messages are not shown: --last N shows the latest ones, --json all of them"
                show(coloured(f"{_INDENT}… {left_out}"))
                first = head - MOST_OF_A_BOOK
            _print(scrollback, printer, first, head)
            if not json:
                names = {agent.uuid: agent.short for agent in some_agents(client, _looked_at(books.values()))}
                for book in books.values():
                    show(coloured(summary_of(book, names)))
            if follow:
                _follow(feed, printer, [record], notice)


def tail(database: str | None, agents: Sequence[str], *, json: bool, show: _Show, notice: _Tell) -> None:
    """Print what these agents, or all agents, write from now on; end when all of the given agents are dead.

    Raises the errors of `Client.open` and `Client.find`.
    """
    with Client.open(database) as client:
        records = client.find_all(agents)
        with commits_of(client, [record.uuid for record in records] or None) as feed:
            _follow(feed, LogPrinter(client, show, json), records, notice)


def _follow(feed: CommitFeed, printer: LogPrinter, only: Sequence[AgentRecord], notice: _Tell) -> None:
    """Print messages and deaths as they come; with ``only``, until all of these agents are dead."""
    living, hosts = {record.uuid for record in only if record.living}, feed.hosts
    notice(_hosted(hosts))
    for news in feed if living or not only else ():
        for event in host_events(hosts, news.hosts):
            notice(host_ended(event) if isinstance(event, HostEnded) else _hosted(news.hosts))
        hosts = news.hosts
        for message in news.messages:
            printer.print(message)
        for death in news.died:
            printer.print(death)
        living -= {death.agent_uuid for death in news.died}
        if only and not living:
            break
    notice("Nothing more comes: dead agents write no logs.")


def _hosted(hosts: Sequence[HostRecord]) -> str:
    if not hosts:
        return "No process runs these agents: nothing comes until one does, as ikigai does. Ctrl-C ends this."
    return f"These agents are run by {enumerated([str(host) for host in reversed(hosts)])}. Ctrl-C ends this."


def _looked_at(books: Iterable[Book]) -> list[str]:
    """Return the uuids of the agents whose histories experiments examine, for experiments that examine only one."""
    of = [book.terms.get("of") for book in books if book.terms]
    return [uuid for uuid in of if isinstance(uuid, str)]


def _print(scrollback: Scrollback, printer: LogPrinter, start: int, end: int) -> None:
    for message in _parts(scrollback, start, end):
        printer.print(message)


def _parts(scrollback: Scrollback, start: int, end: int) -> Iterator[Message]:
    """Yield the messages with ``start < id <= end``, which are read in batches."""
    for low in range(start, end, AT_ONCE):
        yield from scrollback.between(low, min(low + AT_ONCE, end))
