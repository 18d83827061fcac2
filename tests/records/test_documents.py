"""Documents: clean paths, versions that stay, and no update that is lost unseen."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ikigai_actors import (
    ActorSystem,
    AgentDead,
    AgentNotFound,
    BadInput,
    DocumentChanged,
    DocumentNotFound,
    OfflineProvider,
)
from ikigai_actors.records.documents import DOCUMENT_LIMIT, PATH_LIMIT, Documents, check_path
from ikigai_actors.store import Store
from ikigai_actors.store.unit import write_alone
from ikigai_actors.types import Document, DocumentVersion
from tests.kit.databases import bury
from tests.kit.trees import plant


@pytest.fixture
def documents(store: Store) -> Documents:
    """The documents of a store with the agents root, a and b; time stands still at 7."""
    plant(store, a="root", b="root")
    return Documents(store, lambda unit, timeout: write_alone(store, unit), lambda: 7, lambda *asked: None)


class Author:
    """A handle, as far as documents need one."""

    def __init__(self, uuid: str) -> None:
        self.uuid = uuid


A = Author("a" * 22)


@pytest.mark.parametrize(
    "path",
    ["a", "plan.md", "plan/mast.md", "a/b/c", "...", "..a", "a..", ".hidden", "tee für zwei", "茶/種.md", "-x"],
)
def test_a_clean_relative_path_is_taken(path: str) -> None:
    assert check_path(path) == path


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "empty"),
        ("/etc/passwd", "absolute"),
        ("..", r"name '\.\.'"),
        ("a/../b", r"name '\.\.'"),
        ("a/..", r"name '\.\.'"),
        (".", r"name '\.'"),
        ("a/./b", r"name '\.'"),
        ("a//b", "name ''"),
        ("a/", "name ''"),
        ("a\\b", "backslash"),
        (" a", "name ' a'"),
        ("a/b ", "name 'b '"),
        ("a\nb", "cannot be seen"),
        ("a\x1b[2Jb", "cannot be seen"),
        ("a\u202eb", "cannot be seen"),
        ("a\0b", "NUL"),
        ("\ud800", "surrogate"),
        ("x" * (PATH_LIMIT + 1), "513"),
        ("茶" * 171, "513"),
    ],
)
def test_any_other_path_is_refused_and_told_why(path: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        check_path(path)


@given(st.text(max_size=20) | st.lists(st.sampled_from(["a", ".", "..", "", " ", "b.md", "\\", "\t"])).map("/".join))
def test_a_path_that_is_taken_names_one_place_below_the_root(path: str) -> None:
    try:
        check_path(path)
    except BadInput:
        return
    names = path.split("/")
    assert all(name and name not in (".", "..") and name == name.strip() for name in names)
    assert path.isprintable()
    assert "\\" not in path


@given(st.lists(st.from_regex(r"[a-z0-9][a-z0-9._-]{0,8}", fullmatch=True), min_size=1, max_size=8))
def test_names_between_slashes_are_a_path(names: list[str]) -> None:
    assert check_path("/".join(names)) == "/".join(names)


def test_each_write_makes_a_version_that_stays(documents: Documents) -> None:
    assert documents.write("plan.md", "one") == 1
    assert documents.write("plan.md", "two") == 2
    assert documents.write("other.md", "else") == 1
    assert documents.read("plan.md") == Document("plan.md", 2, None, 7, "two")
    assert documents.read("plan.md", version=1) == Document("plan.md", 1, None, 7, "one")
    assert documents.log("plan.md") == [
        DocumentVersion("plan.md", 1, None, 7, False),
        DocumentVersion("plan.md", 2, None, 7, False),
    ]


def test_a_deletion_is_a_version_too_and_what_was_written_stays_readable(documents: Documents) -> None:
    documents.write("plan.md", "one")
    assert documents.delete("plan.md") == 2
    with pytest.raises(DocumentNotFound, match="deleted: version 2") as gone:
        documents.read("plan.md")
    assert (gone.value.path, gone.value.version) == ("plan.md", 2)
    assert documents.read("plan.md", version=1).body == "one"
    with pytest.raises(DocumentNotFound, match="is a deletion"):
        documents.read("plan.md", version=2)
    assert documents.list() == []
    assert documents.write("plan.md", "again") == 3
    assert [version.deleted for version in documents.log("plan.md")] == [False, True, False]


def test_what_is_not_there_says_so(documents: Documents) -> None:
    documents.write("plan.md", "one")
    for look in (documents.read, documents.delete, documents.log):
        with pytest.raises(DocumentNotFound, match=r"no document 'none\.md'") as missing:
            look("none.md")
        assert missing.value.version == 0
    with pytest.raises(DocumentNotFound, match=r"Version 9 .* never written; there is version 1"):
        documents.read("plan.md", version=9)
    documents.delete("plan.md")
    with pytest.raises(DocumentNotFound, match="deleted"):
        documents.delete("plan.md")
    assert len(documents.log("plan.md")) == 2


def test_a_write_that_expects_another_version_is_refused_and_told_what_is_there(documents: Documents) -> None:
    assert documents.write("plan.md", "one", expect=0) == 1
    assert documents.write("plan.md", "two", expect=1) == 2
    for expect in (0, 1, 3):
        with pytest.raises(DocumentChanged, match=rf"at version {expect}; there is version 2, written") as changed:
            documents.write("plan.md", "lost", expect=expect)
        assert (changed.value.path, changed.value.version) == ("plan.md", 2)
        with pytest.raises(DocumentChanged):
            documents.delete("plan.md", expect=expect)
    assert documents.delete("plan.md", expect=2) == 3
    with pytest.raises(DocumentChanged, match="there is version 3, deleted"):
        documents.write("plan.md", "lost", expect=2)
    with pytest.raises(DocumentChanged, match="nothing was ever written"):
        documents.write("new.md", "lost", expect=1)
    assert documents.write("plan.md", "back", expect=3) == 4
    assert documents.read("plan.md").body == "back"


def test_what_is_no_version_is_refused(documents: Documents) -> None:
    odd: list[Any] = [-1, True, "1", 1.5, 2**63]
    for expect in odd:
        with pytest.raises(BadInput, match="Expected expect to be a whole number from 0 on"):
            documents.write("plan.md", "text", expect=expect)
        with pytest.raises(BadInput, match="Expected version to be a whole number from 1 on"):
            documents.read("plan.md", version=expect)


def test_a_text_may_be_empty_and_as_long_as_the_limit_in_bytes(documents: Documents) -> None:
    for body in ("", "x" * DOCUMENT_LIMIT, "é" * (DOCUMENT_LIMIT // 2)):
        documents.write("plan.md", body)
        assert documents.read("plan.md").body == body
    for body, message in (
        ("x" * (DOCUMENT_LIMIT + 1), "1,048,577"),
        ("é" * (DOCUMENT_LIMIT // 2 + 1), "1,048,578"),
        ("\0", "NUL"),
    ):
        with pytest.raises(BadInput, match=message):
            documents.write("plan.md", body)
    assert len(documents.log("plan.md")) == 3


def test_documents_are_listed_by_path_as_far_as_they_begin_with_a_prefix(documents: Documents) -> None:
    for path in ("b.md", "a/2.md", "a/10.md", "A.md", "a_c.md", "a%c.md"):
        documents.write(path, "one")
    documents.write("b.md", "two")
    documents.write("gone.md", "one")
    documents.delete("gone.md")
    assert [(latest.path, latest.version) for latest in documents.list()] == [
        ("A.md", 1), ("a%c.md", 1), ("a/10.md", 1), ("a/2.md", 1), ("a_c.md", 1), ("b.md", 2),
    ]  # fmt: skip
    assert [latest.path for latest in documents.list("a/")] == ["a/10.md", "a/2.md"]
    assert [latest.path for latest in documents.list("a_")] == ["a_c.md"]
    assert documents.list("none") == []


def test_a_bad_path_is_refused_wherever_it_is_given(documents: Documents) -> None:
    for call in (lambda: documents.write("../x", ""), lambda: documents.read("/x"), lambda: documents.delete("")):
        with pytest.raises(BadInput):
            call()
    with pytest.raises(BadInput):
        documents.log("a//b")


def test_an_author_is_an_agent_that_lives(database: str) -> None:
    with ActorSystem.open(database, OfflineProvider()) as system:
        documents, root, child = system.documents, system.root, system.root.fork(name="dba")
        documents.write("plan.md", "one", author=root)
        documents.write("plan.md", "two", author="dba")
        documents.write("plan.md", "three", author=child.uuid[:10])
        documents.write("plan.md", "four")
        assert [version.author for version in documents.log("plan.md")] == [root.uuid, child.uuid, child.uuid, None]
        assert documents.read("plan.md", version=2).author == child.uuid
        bury(system._store, child.uuid)
        with pytest.raises(AgentDead, match="writes no documents"):
            documents.write("plan.md", "lost", author=child)
        for nobody in ("nobody", A.uuid, A):
            with pytest.raises(AgentNotFound):
                documents.delete("plan.md", author=nobody)
        assert len(documents.log("plan.md")) == 4


def test_documents_are_there_in_the_next_session(durable: str) -> None:
    with ActorSystem.open(durable, OfflineProvider()) as system:
        system.documents.write("plan.md", "# Plan", author=system.root)
    with ActorSystem.open(durable, OfflineProvider()) as system:
        assert system.documents.read("plan.md").body == "# Plan"
