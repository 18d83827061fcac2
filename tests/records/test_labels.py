"""Sets of labels: what may be one, and how it is kept."""

from typing import Any

import pytest

from ikigai_actors import BadInput
from ikigai_actors.records.agents.labels import check_labels, joined, labels_in, set_id, set_of


def test_equal_sets_are_one_text_and_other_sets_are_others() -> None:
    assert set_of({"user": "ann", "team": "sales"}) == set_of({"team": "sales", "user": "ann"})
    sets = [{"team": "sales"}, {"team": "Sales"}, {"sales": "team"}, {"team": "sales", "user": "ann"}, {}]
    assert len({set_id(set_of(labels)) for labels in sets}) == len(sets)
    assert [labels_in(set_of(labels)) for labels in sets] == sets


def test_the_id_of_a_set_is_the_same_in_every_version() -> None:
    assert (set_id(set_of({"team": "sales"})), set_id("")) == ("a442675e243d74e3", "")


def test_further_labels_go_over_a_set() -> None:
    own = set_of({"team": "sales", "user": "ann"})
    assert labels_in(joined(own, {"user": "bob"})) == {"team": "sales", "user": "bob"}
    assert joined(own, {}) == own


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("team=sales", "labels to be a dict"),
        ([("team", "sales")], "labels to be a dict"),
        ({1: "x"}, "the key of a label to be text"),
        ({"": "x"}, "the key of a label to have 1 to 64 characters"),
        ({" ": "x"}, "the key of a label to have 1 to 64 characters"),
        ({"k" * 65: "x"}, "the key of a label to have 1 to 64 characters"),
        ({"team": 5}, "the label 'team' to be text"),
        ({"team": ""}, "the label 'team' to have 1 to 256 characters"),
        ({"team": "v" * 257}, "the label 'team' to have 1 to 256 characters"),
        ({"team": "a\0b"}, "NUL"),
        ({"team": "\ud800"}, "half of a character"),
        ({str(number): "x" for number in range(17)}, "at most 16 labels"),
    ],
)
def test_what_is_no_label_is_refused(wrong: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        check_labels(wrong)


def test_what_a_label_may_be() -> None:
    most = {f"{number:064}": "v" * 256 for number in range(16)}
    assert check_labels(most) == most
    assert check_labels(None) == check_labels({}) == {}


@pytest.mark.parametrize("text", ["{}", '{"b":"x","a":"y"}', '{"a":1}', '{"a": "x"}', "[]", "nothing"])
def test_what_is_no_set_is_found(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        labels_in(text)
