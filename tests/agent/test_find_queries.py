"""Thirty queries of a model, each after one tool, among the built-in calls and the tools of an MCP server."""

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping

import pytest

from ikigai_actors import McpServer
from ikigai_actors.agent.builtin_calls.finding import MOST_HITS, ranked
from ikigai_actors.agent.toolbox import Toolbox
from ikigai_actors.system.agents_tool import ListAgents
from tests.kit.mcp_rendezvous import SERVER, Bench

pytestmark = pytest.mark.slow("starts an MCP server")

AMONG_FIRST = 3
"""The wanted tool is among this many: one fewer than a query finds."""

LISTED = {
    "create_issue": "Create a new issue in a GitHub repository.",
    "get_issue": "Get details of a specific issue in a GitHub repository.",
    "list_issues": "List issues in a GitHub repository. For pagination, use the 'endCursor' of the response before.",
    "add_issue_comment": "Add a comment to a specific issue in a GitHub repository.",
    "create_pull_request": "Create a new pull request in a GitHub repository.",
    "merge_pull_request": "Merge a pull request in a GitHub repository.",
    "get_pull_request_diff": "Get the diff of a pull request.",
    "list_commits": "Get list of commits of a branch in a GitHub repository. Returns at least 30 results per page.",
    "create_branch": "Create a new branch in a GitHub repository.",
    "get_file_contents": "Get the contents of a file or directory from a GitHub repository.",
    "push_files": "Push multiple files to a GitHub repository in a single commit.",
    "search_code": "Fast and precise code search across ALL GitHub repositories using GitHub's native search engine.",
    "fork_repository": "Fork a GitHub repository to your account or specified organization.",
    "list_workflow_runs": "List workflow runs for a specific workflow.",
}
"""The tools of the server, with the words of GitHub's own."""

QUERIES = {
    "write a shared document that other agents can read": "document_write",
    "read the document plan/mast.md": "document_read",
    "which documents exist": "document_list",
    "remove a document that is outdated": "document_delete",
    "set a reminder for tomorrow morning": "remind",
    "run a task every day, like cron": "remind",
    "wake me up in 10 minutes": "remind",
    "cancel a scheduled timer": "cancel_reminder",
    "get notified when another agent ends": "monitor",
    "list my child agents and their state": "agents",
    "stop a running child agent": "kill",
    "change my own name": "rename",
    "finish and report my result to my supervisor": "exit",
    "take over the work of a child": "merge",
    "compare what two agents have said since the fork": "diff",
    "give more token budget to a child": "grant",
    "ask the user a question": "ask_person",
    "join a broadcast group": "join_group",
    "unsubscribe from a group": "leave_group",
    "look up an earlier message from the summarized conversation": "recall",
    "compress my context window": "compact",
    "check for unread mail without reading it": "check_mail",
    "open a GitHub issue": "create_issue",
    "comment on an issue": "add_issue_comment",
    "create a PR": "create_pull_request",
    "show the diff of a pull request": "get_pull_request_diff",
    "see the commit history of a branch": "list_commits",
    "read a file from a GitHub repo": "get_file_contents",
    "search code across repositories": "search_code",
    "CI workflow status": "list_workflow_runs",
}
"""By query: the tool that is meant. Those of the server stand without its prefix."""


@pytest.fixture(scope="module")
def about() -> Iterator[Mapping[str, str]]:
    """The words about each tool that a model has to find."""
    tools = [{"name": name, "description": words, "inputSchema": {"type": "object"}} for name, words in LISTED.items()]
    listing = json.dumps({"jsonrpc": "2.0", "id": "$ID", "result": {"tools": tools}})
    bench = Bench()
    bench.open(McpServer([*SERVER, b64encode(f"{listing}\n".encode()).decode()], name="github"))
    toolbox = Toolbox([ListAgents(), *bench.tools.values()])
    yield {name: traits.about for name, traits in toolbox.traits({}).items() if traits.about}
    bench.close()


def test_each_of_thirty_queries_finds_the_tool_that_is_meant_among_the_first_three(about: Mapping[str, str]) -> None:
    assert len(QUERIES) == 30
    assert {f"github__{name}" for name in LISTED} < {*about}
    assert AMONG_FIRST < MOST_HITS
    hits = {query: ranked(query, about)[:AMONG_FIRST] for query in QUERIES}
    meant = {query: f"github__{name}" if name in LISTED else name for query, name in QUERIES.items()}
    assert {query: names for query, names in hits.items() if meant[query] not in names} == {}
