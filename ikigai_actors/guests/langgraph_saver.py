"""Checkpoints of LangGraph in this database: a checkpoint saver of that library.

    graph = builder.compile(checkpointer=IkigaiSaver(ActorSystem.attach(database)))
    saver.copy_thread("mast", "mast, but taller")       # one row, whatever the length of the thread

A thread is a guest log (`ikigai_actors.records.guests`), and a checkpoint an entry of it; so is each write of a task.
The contents that a copy shares with its source are stored once. Of several entries with the same key, the latest
counts.
"""

import heapq
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    CheckpointTuple,
    get_serializable_checkpoint_metadata,
    writes_sort_key,
)

from ikigai_actors.arguments import check_choice
from ikigai_actors.errors import BadInput
from ikigai_actors.reach.guest_logs import GuestLogs, GuestSystem, ShownOf, guest_place
from ikigai_actors.records.guests import GuestEntry, GuestPlace

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
    from langgraph.checkpoint.serde.base import SerializerProtocol

_THREAD = "langgraph"


class IkigaiSaver(BaseCheckpointSaver[int]):
    """A checkpoint saver in the database of a system. Several processes may use it at once, on one thread too."""

    def __init__(self, system: GuestSystem, *, serde: "SerializerProtocol | None" = None) -> None:
        """Store checkpoints in the database of an open system; its agents need not be used."""
        super().__init__(serde=serde)
        self._logs = GuestLogs(system)

    def put(
        self,
        config: "RunnableConfig",
        checkpoint: "Checkpoint",
        metadata: "CheckpointMetadata",
        new_versions: "ChannelVersions",
    ) -> "RunnableConfig":
        """Store a checkpoint; return the configuration that identifies it."""
        place, part = _place(config), _namespace(config)
        kind, body = self.serde.dumps_typed(checkpoint)
        fields = get_serializable_checkpoint_metadata(config, metadata)
        data = _json({"type": kind, "parent": _checkpoint(config), "metadata": fields})
        run = fields.get("run_id")
        entry = GuestEntry(
            part=part, about=checkpoint["id"], tag=run if isinstance(run, str) else None, data=data, body=body
        )
        self._logs.append(place, [entry])
        return _config(place.name, part, checkpoint["id"])

    def put_writes(
        self, config: "RunnableConfig", writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store the writes of a task.

        A stored write is kept, except an error, an interrupt and the like, which are replaced.
        """
        place, part, about = _place(config), _namespace(config), _checkpoint(config)
        if about is None:
            raise BadInput("Expected config to name the checkpoint that the writes follow; it has no checkpoint_id.")
        entries = []
        for number, (channel, value) in enumerate(writes):
            kind, body = self.serde.dumps_typed(value)
            key = json.dumps([task_id, WRITES_IDX_MAP.get(channel, number)])
            data = _json({"type": kind, "channel": channel, "path": task_path})
            entries.append(GuestEntry(part=part, about=about, key=key, data=data, body=body))
        replaces = all(channel in WRITES_IDX_MAP for channel, _ in writes)
        (self._logs.put if replaces else self._logs.append_new)(place, entries)

    def get_tuple(self, config: "RunnableConfig") -> CheckpointTuple | None:
        """Return the checkpoint that a configuration names, or without a ``checkpoint_id`` the latest checkpoint.

        None if there is no such checkpoint.
        """
        return next(self._list(config, _namespace(config), None, None, _checkpoint(config), most=1), None)

    def list(
        self,
        config: "RunnableConfig | None",
        *,
        filter: dict[str, Any] | None = None,
        before: "RunnableConfig | None" = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield the checkpoints of a thread, or of all threads, latest first."""
        wanted = {} if config is None else config.get("configurable", {})
        until = None if before is None else _checkpoint(before)
        tuples = self._list(config, wanted.get("checkpoint_ns"), filter, until, wanted.get("checkpoint_id"))
        return islice(tuples, limit)

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread. Copies of it keep their contents."""
        self._logs.drop(_thread(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of some runs with their writes, in every thread and every copy."""
        self._logs.forget_tagged(_THREAD, run_ids)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Make a new thread that begins with all contents of another one; this stores one row only.

        Raises `BadInput` when there is no such thread, or the target is there already.
        """
        self._logs.branch(_thread(source_thread_id), _thread(target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete all but the latest checkpoint of each namespace, and the checkpoints that its `DeltaChannel` needs.

        Copies keep their contents. Contents that a thread shares with its source are hidden from the thread, and their
        rows stay.
        """
        check_choice(strategy, "strategy", ("keep_latest", "delete"))
        for place in map(_thread, thread_ids):
            if strategy == "delete":
                self._logs.drop(place)
            else:
                self._logs.keep_only(place, self._needed)

    async def aput(
        self,
        config: "RunnableConfig",
        checkpoint: "Checkpoint",
        metadata: "CheckpointMetadata",
        new_versions: "ChannelVersions",
    ) -> "RunnableConfig":
        return await self._logs.ask_in_order(lambda: self.put(config, checkpoint, metadata, new_versions))

    async def aput_writes(
        self, config: "RunnableConfig", writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await self._logs.ask_in_order(lambda: self.put_writes(config, writes, task_id, task_path))

    async def aget_tuple(self, config: "RunnableConfig") -> CheckpointTuple | None:
        return await self._logs.ask(lambda: self.get_tuple(config))

    async def alist(
        self,
        config: "RunnableConfig | None",
        *,
        filter: dict[str, Any] | None = None,
        before: "RunnableConfig | None" = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        tuples = self.list(config, filter=filter, before=before, limit=limit)
        while (saved := await self._logs.ask(lambda: next(tuples, None))) is not None:
            yield saved

    async def adelete_thread(self, thread_id: str) -> None:
        await self._logs.ask_in_order(lambda: self.delete_thread(thread_id))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await self._logs.ask_in_order(lambda: self.delete_for_runs(run_ids))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await self._logs.ask_in_order(lambda: self.copy_thread(source_thread_id, target_thread_id))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await self._logs.ask_in_order(lambda: self.prune(thread_ids, strategy=strategy))

    def _list(
        self,
        config: "RunnableConfig | None",
        part: str | None,
        wanted: Mapping[str, Any] | None,
        before: str | None,
        only: str | None,
        most: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield the matching checkpoints, latest first; each is read only when it is requested."""
        place = None if config is None else _place(config)
        outlines = self._logs.outlines(_THREAD, place, part, before, only, most)
        pages = [[(entry.about, log, entry) for entry in some] for log, some in outlines]
        for _, log, entry in heapq.merge(*pages, key=lambda row: row[0], reverse=True):
            if _fits(json.loads(entry.data or "{}")["metadata"], wanted or {}):
                shown = self._logs.about(log, entry)
                if "" in shown:  # it was not deleted meanwhile
                    yield self._tuple(str(log.name), shown)

    def _tuple(self, thread: str, shown: Mapping[str, GuestEntry]) -> CheckpointTuple:
        entry = shown[""]
        data = json.loads(entry.data or "")
        writes = []
        for key, write in shown.items():
            if key:
                task, number = json.loads(key)
                said = json.loads(write.data or "")
                value = self.serde.loads_typed((said["type"], write.body or b""))
                writes.append((writes_sort_key(said["path"], task, number), (task, said["channel"], value)))
        return CheckpointTuple(
            config=_config(thread, entry.part, entry.about),
            checkpoint=self.serde.loads_typed((data["type"], entry.body or b"")),
            metadata=data["metadata"],
            parent_config=None if data["parent"] is None else _config(thread, entry.part, data["parent"]),
            pending_writes=[write for _, write in sorted(writes, key=lambda write: write[0])],
        )

    def _needed(self, entries: Mapping[str, GuestEntry], look_at: ShownOf) -> set[str]:
        """Return the ids of the latest checkpoint and of earlier ones, back to a stored value of each `DeltaChannel`.

        Between two stored values, such a channel has only writes.
        """
        current = next(iter(entries.values()))
        needed = {current.about}
        open_channels = set(json.loads(current.data or "")["metadata"].get("counters_since_delta_snapshot", ()))
        while open_channels:
            shown = self._tuple("", look_at(current))
            open_channels -= shown.checkpoint["channel_values"].keys()
            parent = json.loads(current.data or "")["parent"]
            if not open_channels or parent not in entries:
                break
            current = entries[parent]
            needed.add(parent)
        return needed


def _fits(metadata: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(key in metadata and metadata[key] == json.loads(_json(value)) for key, value in wanted.items())


def _thread(thread_id: object) -> GuestPlace:
    return guest_place(_THREAD, "", str(thread_id), "thread_id")


def _place(config: "RunnableConfig") -> GuestPlace:
    if "thread_id" not in (named := config.get("configurable", {})):
        raise BadInput('Expected config to name a thread, as {"configurable": {"thread_id": "mast"}}; it names none.')
    return _thread(named["thread_id"])


def _namespace(config: "RunnableConfig") -> str:
    return str(config.get("configurable", {}).get("checkpoint_ns", ""))


def _checkpoint(config: "RunnableConfig") -> str | None:
    checkpoint = config.get("configurable", {}).get("checkpoint_id")
    return None if checkpoint is None else str(checkpoint)


def _config(thread: str, part: str, about: str) -> "RunnableConfig":
    return {"configurable": {"thread_id": thread, "checkpoint_ns": part, "checkpoint_id": about}}


def _json(value: object) -> str:
    try:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"Metadata of a checkpoint must be JSON: {error}. Nothing was stored.") from error
