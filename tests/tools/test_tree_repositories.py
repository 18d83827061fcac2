"""What a merge of files does with repositories of git."""

from collections.abc import Mapping
from pathlib import Path

from ikigai_actors.tools.trees.layers import FileView
from ikigai_actors.tools.trees.repositories import divided, head_of, repository_changes
from tests.kit.file_trees import put

ONE, TWO = "1" * 40, "2" * 40


def view(place: Path, files: Mapping[str, str | None]) -> FileView:
    return FileView((), put(place, files))


def test_what_a_repository_knows_of_its_own_is_not_compared_and_one_that_is_new_is_a_directory(tmp_path: Path) -> None:
    here = view(tmp_path / "here", {".git/HEAD": "x", "sub/.git/HEAD": "x", "module/.git": "gitdir: elsewhere"})
    inner = {".git", ".git/index", ".git/objects", ".git/objects/ab/c", "sub/.git/HEAD"}
    paths = {"a", *inner, "module/.git", "new/.git/HEAD", "d/__pycache__/a.pyc"}
    division = divided(paths, here)
    assert division.files == {"a", "module/.git", "new/.git/HEAD"}
    assert division.objects == {".git/objects/ab/c"}
    assert division.repositories == {".git", "sub/.git"}


def test_the_commit_of_a_repository_is_found_wherever_git_keeps_it(tmp_path: Path) -> None:
    branch = {".git/HEAD": "ref: refs/heads/a\n"}
    for number, (files, commit) in enumerate(
        [
            ({".git/HEAD": f"{ONE}\n"}, ONE),
            ({**branch, ".git/refs/heads/a": f"{TWO}\n"}, TWO),
            ({**branch, ".git/packed-refs": f"# pack-refs\n{ONE} refs/heads/b\n{TWO} refs/heads/a\n^{ONE}\n"}, TWO),
            (branch, None),
            ({".git/HEAD": "ref: ../../secret", "secret": ONE}, None),
            ({}, None),
        ]
    ):
        assert head_of(view(tmp_path / str(number), files), ".git") == commit
    (tmp_path / "outside").write_text(ONE)
    linked = put(tmp_path / "linked", {".git/refs": None})
    (linked / ".git" / "HEAD").symlink_to(tmp_path / "outside")
    assert head_of(FileView((), linked), ".git") is None


def test_objects_that_are_missing_and_the_commit_come_along(tmp_path: Path) -> None:
    here = view(tmp_path / "here", {".git/HEAD": ONE, ".git/objects/aa/1": "old"})
    there = view(tmp_path / "there", {
        ".git/HEAD": TWO, ".git/objects/aa/1": "old", ".git/objects/bb/2": "new", ".git/index": "i",
    })  # fmt: skip
    (tmp_path / "scratch").mkdir()
    paths = divided({*there.beneath("."), ".git/objects/gone/3"} - {"."}, here)
    changes = repository_changes(paths, here, there, "ikigai/kid", tmp_path / "scratch")
    assert [change.path for change in changes] == [".git/objects/bb/2", ".git/refs/heads/ikigai/kid"]
    assert changes[1].theirs is not None
    assert changes[1].theirs.read_text() == f"{TWO}\n"
    assert repository_changes(paths._replace(objects=set()), there, there, "ikigai/kid", tmp_path / "scratch") == []
