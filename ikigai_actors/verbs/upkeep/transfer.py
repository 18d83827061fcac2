"""Exports agents to files, and imports agents from files."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import IO

from ikigai_actors.actors.clock import SystemClock
from ikigai_actors.arguments import as_path
from ikigai_actors.errors import StoreInUse
from ikigai_actors.records.agents.words import called
from ikigai_actors.records.transfer.export import export_file
from ikigai_actors.records.transfer.format import RecordFile
from ikigai_actors.records.transfer.graft import Imported, ImportFile
from ikigai_actors.records.transfer.preview import ImportPreview
from ikigai_actors.store.database_clock import clock_of
from ikigai_actors.store.existing import existing_to_read
from ikigai_actors.store.new_file import new_file
from ikigai_actors.verbs.text.harmless import as_json
from ikigai_actors.verbs.text.words import counted
from ikigai_actors.verbs.upkeep.progress import Bar, no_bar

_NAMED = 3
"""The most agents of which a line shows both uuids."""


def export(
    database: str | None,
    agent: str,
    file: str,
    from_clear: bool,
    markdown: bool,
    notice: Callable[[str], object],
    bar: Bar = no_bar,
) -> str:
    """Write a branch to a new file; return a line for a person.

    Raises the errors of `existing_to_read` and `export_file`.
    """
    with existing_to_read(database) as store:
        if markdown:
            from ikigai_actors.verbs.text.markdown import export_markdown

            return f"Wrote the histories of {counted(export_markdown(store, agent, as_path(file)), 'agent')} to {file}."
        now = clock_of(store, SystemClock()).now_ms()
        with bar("records") as advance:
            done = export_file(
                store, agent, as_path(file), now=now, from_clear=from_clear, notice=notice, advance=advance
            )
    parts = [counted(done.messages, "message"), counted(done.mails, "mail")]
    others = ((done.documents, "document version"), (done.blobs, "attachment"))
    parts += [counted(number, what) for number, what in others if number]
    return f"Exported {counted(done.agents, 'agent')} with {', '.join(parts)} to {file}; budgets are not in it."


@contextmanager
def writing(file: str, what: str) -> Iterator[IO[bytes]]:
    """Open a new file that a person has named; after an error the file does not exist. Raises `BadInput`."""
    with new_file(as_path(file), what) as part:
        yield part


def looked_at(file: Path | RecordFile, documents: str, stopped: bool, go: bool) -> ImportFile:
    """Check a file of agents before its import, and return its contents. Raises `BadInput`."""
    return ImportFile.of(file, documents, stopped, go)


def import_agents(
    database: str | None,
    file: ImportFile,
    under: str | None,
    json: bool,
    bar: Bar = no_bar,
) -> str:
    """Import a file as the host of the database; return a line for a person, or a JSON object.

    Raises `StoreInUse` when a process runs the agents, and what `import_file` does.
    """
    from ikigai_actors.system.host.importing import import_file

    try:
        with bar("records") as advance:
            done = import_file(database, replace(file, advance=advance), under)
    except StoreInUse as error:
        raise StoreInUse(f"{error} Import there: /import {file.path.absolute()}") from error
    if json:
        here = [(agent.uuid, agent.name, agent.status) for agent in done.agents]
        receipt = {"renewed": dict(done.renewed), "rehashed": done.rehashed}
        return as_json({"top": done.top, **_as_object(file.manifest.preview, here), **receipt})
    top = next(agent for agent in done.agents if agent.uuid == done.top)
    living = sum(agent.living for agent in done.agents)
    other = f"; {_renewed(done)}" if done.renewed else ""
    if done.rehashed:
        other += f"; {counted(done.rehashed, 'message')} got another hash, since uuids in the histories are others"
    news = f"Imported {counted(len(done.agents), 'agent')}, of which {living} {'lives' if living == 1 else 'live'}"
    return f"{news}, with {top.short} on top{other}."


def _renewed(done: Imported) -> str:
    """Return a text about agents that got other uuids than in the file: their number, and both uuids of some."""
    pairs = ", ".join(f"{was} is {now} here" for was, now in islice(done.renewed.items(), _NAMED))
    more = " and so on; --json has all" if len(done.renewed) > _NAMED else ""
    return f"{len(done.renewed)} of them have other uuids than in the file ({pairs}{more})"


def preview_of(file: ImportFile, json: bool) -> str:
    """Return a preview of a file's import: lines for a person, or a JSON object with the agents of the file."""
    preview = file.manifest.preview
    if json:
        return as_json(_as_object(preview, [(agent.uuid, agent.name, agent.status) for agent in preview.agents]))
    return "\n".join(file.lines())


def _as_object(preview: ImportPreview, agents: Iterable[tuple[str, str | None, str]]) -> dict[str, object]:
    listed = [
        {
            "uuid": uuid,
            "name": name,
            "label": called(uuid, name),
            "status": status,
            "open_turn": agent.open_turn,
            "prompts": agent.prompts,
        }
        for (uuid, name, status), agent in zip(agents, preview.agents, strict=True)
    ]
    needs = {"models": preview.models, "tools": preview.tools, "allowing": preview.allowing, "lifting": preview.lifting}
    return {"agents": listed, **needs}
