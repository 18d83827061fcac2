"""Whom the clients of other servers trust: the authorities that the environment names, as model providers do."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from ikigai_actors import BadInput, McpServer
from ikigai_actors.tools import A2aAgent, Result
from ikigai_actors.tools.base import Toolset
from tests.kit.certificates import self_signed
from tests.kit.mcp_rendezvous import Bench
from tests.kit.remote_mcp import RemoteMcp

pytestmark = pytest.mark.slow("starts servers on loopback")


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RemoteMcp]:
    certificate = self_signed(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.file))
    made = RemoteMcp(certificate=certificate).start()
    yield made
    made.stop()


def test_a_remote_mcp_server_is_trusted_whose_authority_the_environment_names(server: RemoteMcp, bench: Bench) -> None:
    bench.open(McpServer(server.url, name="t"))
    assert bench.call("add", a=2, b=3) == Result("5")


def test_an_agent_of_another_system_is_trusted_whose_authority_the_environment_names(
    server: RemoteMcp, bench: Bench
) -> None:
    bench.open(A2aAgent(server.url, name="t", policy="allow"))
    assert "gave no card (404)" in bench.call("ask", text="tea").content


@pytest.mark.parametrize("toolset", [McpServer("https://[::1]:9/mcp", name="t"), A2aAgent("https://[::1]:9", name="t")])
def test_certificates_that_are_not_there_are_named_with_their_variable(
    toolset: Toolset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/at/all.pem")
    with pytest.raises(BadInput, match=r"SSL_CERT_FILE names cannot be read \('/nowhere/at/all.pem'.*unset it"):
        asyncio.run(toolset.open(lambda text: None))
