"""Branches: a child of agent 0 and all its descendants. Models may fork only while few agents live in their branch.

This stops models from making agents without end, and does not affect other branches. An index counts each branch, no
further than the limit. Agent 0 belongs to no branch; for its own model all agents count.

Births on several hosts at the same moment are not included in one another's counts.
"""

from ikigai_actors.errors import TooManyAgents
from ikigai_actors.records.agents.registry import get
from ikigai_actors.records.log.lineage import read_lineage
from ikigai_actors.records.log.stored_history import StoredHistory
from ikigai_actors.store.base import Transaction


def check_branch(tx: Transaction, parent: str, births: int, limit: int, is_set: bool) -> None:
    """Raise `TooManyAgents` if too many agents live in the branch of an agent whose model forks.

    Args:
        births: the number of children to make.
        limit: the most living agents.
        is_set: whether the setting ``max_agents`` has set the limit, rather than the default.
    """
    [(branch,)] = tx.run("branch_of", uuid=parent)
    if branch is None:
        living = 1 + tx.run("living_in_branches", most=limit)[0][0]
    else:
        living = tx.run("living_in_branch", branch=branch, most=limit)[0][0]
    if living + births <= limit:
        return
    where = "altogether" if branch is None else f"in the branch of {get(tx, branch).short}"
    whose = "the usual limit"
    if is_set:
        source = StoredHistory(tx, read_lineage(tx, parent, whole=True)).sources()["max_agents"]
        whose = f"max_agents, set by {get(tx, source.agent_uuid).short}"
    raise TooManyAgents(
        f"A model forks only while fewer than {limit:,} agents live {where} ({whose}). Let some of them end, or allow "
        "more: /set max_agents N, or configure(max_agents=N).",
        parent,
    )
