"""The page of guarantees names tests that are there."""

import ast
import re

import pytest

from tests.kit.databases import ROOT

PAGE = (ROOT / "docs" / "reference" / "guarantees.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)


def test_each_guarantee_has_its_number_and_its_test() -> None:
    rows = [line.split("|") for line in PAGE.splitlines() if re.match(r"\| \d", line)]
    assert [int(row[1]) for row in rows] == list(range(1, len(rows) + 1))
    assert len(rows) == len(NAMED) == 15
    assert all("tests/" in row[5] for row in rows)


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_a_test_that_the_page_names_is_there(file: str, name: str) -> None:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
