"""Databases that serve all examples of a module."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.conftest import NewDatabase
from tests.kit.databases import Admin, postgres_database


@pytest.fixture(scope="module")
def module_postgres(postgres_url: str, postgres_admin: Admin) -> Iterator[NewDatabase]:
    """Fresh PostgreSQL databases, which go with the module."""
    with ExitStack() as made:
        yield lambda: made.enter_context(postgres_database(postgres_url, postgres_admin))
