"""Templates and filters of deliveries: fields alone are replaced, whatever a stranger sends."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ikigai_actors.errors import BadInput
from ikigai_actors.records.arrivals.templates import (
    MOST_OF_A_BODY,
    MOST_OF_A_FIELD,
    check_template,
    field,
    filled,
    matches,
    needs_json,
    parsed_where,
)

ISSUE = {"action": "opened", "issue": {"number": 3, "title": "It {burns}", "labels": [{"name": "bug"}, {"name": None}]}}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("Issue {issue.number}: {issue.title}", "Issue 3: It {burns}"),
        ("{issue.labels.0.name}", "bug"),
        ("{issue.labels.1.name}|{issue.labels.2}|{nobody.at.home}", "||"),
        ("{issue.labels}", '[{"name": "bug"}, {"name": null}]'),
        ("{{not a field}} {@}", "{not a field} <body>"),
        ("no field", "no field"),
    ],
)
def test_a_field_is_replaced_by_its_value(template: str, text: str) -> None:
    assert filled(check_template(template), ISSUE, "<body>") == text


@pytest.mark.parametrize("template", ["", "  ", "{", "a } b", "{}", "{ }", "{a{b}"])
def test_a_template_that_is_none_is_refused(template: str) -> None:
    with pytest.raises(BadInput):
        check_template(template)


@given(st.text(max_size=30), JSON, st.text(max_size=20))
def test_every_template_that_is_taken_can_be_filled_with_everything(template: str, value: Any, body: str) -> None:
    try:
        check_template(template)
    except BadInput:
        return
    filled(template, value, body)


def test_a_long_field_and_a_long_body_are_cut_and_say_so() -> None:
    assert filled("{a}", {"a": "x" * 5_000}, "") == "x" * MOST_OF_A_FIELD + "… (1,000 characters more)"
    assert filled("{@}", None, "y" * 70_000).endswith(f"… ({70_000 - MOST_OF_A_BODY:,} characters more)")


def test_what_no_database_holds_is_replaced() -> None:
    assert filled("{a}", {"a": "tea\0\ud800"}, "") == "tea\ufffd\ufffd"


def test_a_delivery_passes_where_each_field_has_one_of_its_values() -> None:
    where = parsed_where(["action=opened,reopened", "issue.number=3"])
    assert matches(where, ISSUE)
    assert not matches(where, {**ISSUE, "action": "closed"})
    assert not matches(where, None)
    assert not matches(where, [1, 2])
    with pytest.raises(BadInput):
        parsed_where(["action"])


def test_a_path_leads_through_keys_and_places() -> None:
    assert field([["a", "b"]], "0.1") == "b"
    assert field({"a.b": 1}, "a.b") is None
    assert field([1], "-1") is None
    assert (needs_json("{a}"), needs_json("{@} {{a}}")) == (True, False)
