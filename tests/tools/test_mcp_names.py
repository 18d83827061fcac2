"""What is decided about MCP servers without one: names, policies, restarts, and what cannot be used."""

import re
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.types import Tool as Listed
from mcp.types import ToolAnnotations

from ikigai_actors import BadInput, McpServer
from ikigai_actors.tools.mcp.connection import traits_of
from ikigai_actors.tools.mcp.server import PAUSES, WINDOW, Restarts, name_of, tool_names
from ikigai_actors.tools.policy import Policy, ToolTraits

BAD: Mapping[str, tuple[Callable[[], McpServer], str]] = {
    "nothing": (lambda: McpServer("  "), "Expected a command"),
    "an open quote": (lambda: McpServer("run 'this"), "cannot be split into words"),
    "a name": (lambda: McpServer("uvx it", name="a b"), "A server's name is"),
    "a policy": (lambda: McpServer("uvx it", policy="perhaps"), "allow, ask, deny, or None"),
    "a time": (lambda: McpServer("uvx it", timeout=0), "above 0"),
}


@pytest.mark.parametrize(("make", "text"), BAD.values(), ids=BAD)
def test_what_cannot_be_used_is_said_when_a_server_is_described(make: Callable[[], McpServer], text: str) -> None:
    with pytest.raises(BadInput, match=text):
        make()


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("uvx mcp-server-time", "mcp-server-time"),
        ("npx -y @modelcontextprotocol/server-filesystem /srv", "server-filesystem"),
        ("npx -y files@1.2", "files"),
        ("python3.11 -m tests.kit.mcp_server", "tests_kit_mcp_server"),
        ("/usr/bin/python server.py --fast", "server"),
        ("env TOKEN=x uv run ./deep/thing", "thing"),
        ("docker run -i --rm mcp/github", "github"),
        ("sh -c 'exec something'", "sh"),
        ("python", "python"),
        ("été", "_t_"),
    ],
)
def test_a_server_is_named_after_what_is_run(words: str, name: str) -> None:
    assert McpServer(words).name == name


REMOTE_NAMES = st.text("ab./é", max_size=3) | st.sampled_from(["x" * 200, "x" * 201, "x" * 199 + "."])


@given(st.sets(REMOTE_NAMES), st.from_regex(r"[a-zA-Z0-9_-]{1,64}", fullmatch=True))
def test_names_are_legal_and_differ_and_do_not_depend_on_the_order(remote: set[str], server: str) -> None:
    names = tool_names(server, remote)
    assert set(names) == remote
    assert len(set(names.values())) == len(remote)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", name) for name in names.values())
    assert all(name.startswith(f"{server}__") for name in names.values())
    assert tool_names(server, sorted(remote, reverse=True)) == names


@given(st.lists(st.text(min_size=1).filter(lambda word: "\0" not in word), min_size=1))
def test_every_command_gives_a_legal_name(words: list[str]) -> None:
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name_of(words))


@pytest.mark.parametrize(
    ("hints", "policy", "traits"),
    [
        (None, None, ToolTraits(policy=Policy.ASK)),
        (ToolAnnotations(), None, ToolTraits(policy=Policy.ASK)),
        (ToolAnnotations(read_only_hint=True), None, ToolTraits(idempotent=True, read_only=True)),
        (ToolAnnotations(idempotent_hint=True), None, ToolTraits(idempotent=True, policy=Policy.ASK)),
        (None, Policy.ALLOW, ToolTraits()),
        (
            ToolAnnotations(read_only_hint=True),
            Policy.DENY,
            ToolTraits(idempotent=True, read_only=True, policy=Policy.DENY),
        ),
    ],
)
def test_only_what_reads_is_allowed_unless_a_policy_is_given(
    hints: ToolAnnotations | None, policy: Policy | None, traits: ToolTraits
) -> None:
    listed = Listed(name="it", input_schema={"type": "object"}, annotations=hints)
    assert traits_of(listed, policy) == traits


def test_an_end_counts_until_the_last_moment_of_the_period() -> None:
    restarts = Restarts()
    for end_of_run in (0.0, WINDOW, 2 * WINDOW):
        restarts = restarts.after(end_of_run)
    assert (restarts.given_up, restarts.pause(2 * WINDOW)) == (False, PAUSES[1])
