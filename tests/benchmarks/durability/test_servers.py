"""The servers of the durability benchmark end with all their processes."""

import sys
from contextlib import ExitStack

import pytest

from benchmarks.durability.servers import Program, _free_port, _listens


@pytest.mark.slow("starts a server twice")
def test_a_server_that_a_script_starts_is_lost_with_the_script_and_ends_with_the_benchmark() -> None:
    port = _free_port()
    script = f"{sys.executable} -m http.server --bind 127.0.0.1 {port} & wait"
    with ExitStack() as stack:
        server = Program(stack, ["sh", "-c", script], {}, port)
        proved, proof = server.crash()
        assert proved, proof
        assert _listens(port)
    assert not _listens(port)
