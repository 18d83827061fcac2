"""What the tests of stores share."""

from collections.abc import Iterator

import pytest

from tests.kit.hosts import Hosts


@pytest.fixture
def take() -> Iterator[Hosts]:
    """Takes databases for the test, and gives them back in the end."""
    hosts = Hosts()
    yield hosts
    hosts.close()
