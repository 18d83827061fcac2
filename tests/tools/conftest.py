"""Fixtures for the tests of tools."""

from collections.abc import Iterator

import pytest

from tests.kit.mcp_rendezvous import Bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.close()
