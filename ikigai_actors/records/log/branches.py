"""Branches: a child of agent 0, and all that come from it. A model forks only while few agents live in its branch.

That stops a model that makes agents which make agents. It hurts nobody else: each branch is counted by itself, by an
index and no further than the limit. Agent 0 belongs to no branch; for its own model all agents count.

Births of several hosts at one moment do not count each other.
"""

from ikigai_actors.errors import TooManyAgents
from ikigai_actors.records.agents.registry import get
from ikigai_actors.records.log.lineage import read_lineage
from ikigai_actors.records.log.stored_history import StoredHistory
from ikigai_actors.store.base import Transaction


def check_branch(tx: Transaction, parent: str, births: int, limit: int, is_set: bool) -> None:
    """Raise `TooManyAgents` where too many agents live in the branch of an agent whose model forks.

    Args:
        births: how many children it is to have.
        limit: how many may live then.
        is_set: whether the setting ``max_agents`` says so; else that is the usual limit.
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
