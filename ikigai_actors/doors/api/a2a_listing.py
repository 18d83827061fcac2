"""The list of tasks of A2A: its filters, and a page of it. Pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from ikigai_actors.doors.api.a2a_tasks import state_of, task_json
from ikigai_actors.doors.api.requests import number_in
from ikigai_actors.errors import BadInput
from ikigai_actors.reach.contexts import ContextTask
from ikigai_actors.verbs.principal import Principal

MOST_TASKS_IN_PAGE = 100


class ListedTasks(NamedTuple):
    """The filters and the page of a list of tasks, which is sorted by the latest change, newest first."""

    context: str
    """The context of the tasks; empty for all contexts."""
    state: str
    """The state of the tasks; empty for all states."""
    since: int
    """Only tasks that have changed since this time, in milliseconds since 1970, are listed."""
    size: int
    after: tuple[int, str] | None
    """The time of the latest change, and the id, of the last task of the page before; None for the first page."""
    history: int | None
    artifacts: bool

    @classmethod
    def of(cls, query: Mapping[str, str]) -> "ListedTasks":
        """Return the filters and the page that a query asks for. Raises `BadInput` and `ApiProblem`."""
        size = number_in(query.get("pageSize", "50"), "pageSize")
        history = query.get("historyLength")
        return cls(
            query.get("contextId", ""),
            query.get("status", ""),
            _time(query.get("statusTimestampAfter", "")),
            min(size, MOST_TASKS_IN_PAGE) or 50,
            _place(query.get("pageToken", "")),
            None if history is None else number_in(history, "historyLength"),
            query.get("includeArtifacts", "false").lower() == "true",
        )

    def page(self, every: Sequence[ContextTask], principal: Principal) -> dict[str, Any]:
        """Return a page of the tasks that match, as A2A's JSON."""
        wanted = sorted(
            (
                task
                for task in every
                if task.at >= self.since and self.state in ("", "TASK_STATE_UNSPECIFIED", state_of(task, principal))
            ),
            key=_placed,
            reverse=True,
        )
        rest = [task for task in wanted if self.after is None or _placed(task) < self.after]
        shown = rest[: self.size]
        more = len(rest) > len(shown)
        tasks = [task_json(task, principal, self.history) for task in shown]
        for task in () if self.artifacts else tasks:
            task.pop("artifacts", None)
        token = "{}~{}".format(*_placed(shown[-1])) if more else ""
        return {"tasks": tasks, "nextPageToken": token, "pageSize": self.size, "totalSize": len(wanted)}


def _placed(task: ContextTask) -> tuple[int, str]:
    return task.at, str(task.name)


def _place(token: str) -> tuple[int, str] | None:
    at, _, name = token.partition("~")
    if not token:
        return None
    return number_in(at, "pageToken, which the page before gave,"), name


def _time(text: str) -> int:
    if not text:
        return 0
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise BadInput(f"Expected statusTimestampAfter as 2026-11-29T09:28:33Z; got {text[:40]!r}.") from None
