"""Imports agents while no agents run. This process is the host of the database during the import."""

import os
from contextlib import ExitStack

from ikigai_actors.actors.clock import SystemClock
from ikigai_actors.records.agents.identity import new_agent_uuid
from ikigai_actors.records.agents.registry import ensure_root
from ikigai_actors.records.transfer.graft import Import, Imported, ImportFile
from ikigai_actors.store import open_store
from ikigai_actors.store.hosts.host import new_host, take_database
from ikigai_actors.store.journal import Journal
from ikigai_actors.store.migrations import ensure_schema


def import_file(database: str | os.PathLike[str] | None, file: ImportFile, under: str | None = None) -> Imported:
    """Import the agents of a file into a database, and start none of them. An empty database gets agent 0 first.

    Args:
        database: the database, as for `ActorSystem.open`.
        file: the file, which was read and checked.
        under: a uuid, name, or unique prefix of a uuid; None for agent 0.

    Raises:
        StoreInUse: a process runs the agents.
        IkigaiError: an error of `System.import_`, or one that `ActorSystem.open` raises for the database.
    """
    with ExitStack() as closing:
        store = open_store(database)
        closing.callback(store.close)
        ensure_schema(store)
        host = take_database(new_host(store, new_agent_uuid(os.urandom), SystemClock()))
        closing.callback(host.release)
        host.keep()
        ensure_root(store, os.urandom, host.clock.now_ms())
        journal = Journal(store, host.id, host.clock)
        closing.callback(journal.close)
        journal.start()
        imported: Imported = journal.perform(Import(file, under, host.id, host.clock.now_ms(), os.urandom))
        return imported
