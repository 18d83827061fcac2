"""A directory goes whatever an agent has left in it, or stays with one warning that names it."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ikigai_actors.tools.removal import remove_all
from ikigai_actors.tools.trees.layers import paths_beneath
from tests.kit.deep_directories import nest


@pytest.mark.parametrize("levels", [3_000, pytest.param(100_000, marks=pytest.mark.thorough("six seconds"))])
def test_a_directory_deeper_than_a_path_goes(tmp_path: Path, levels: int) -> None:
    nest(tmp_path / "deep", levels)
    assert remove_all(tmp_path / "deep")
    assert not (tmp_path / "deep").exists()


def test_links_pipes_devices_and_directories_without_rights_go_and_nothing_is_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    place = tmp_path / "left"
    for name in ("a", "a/b", "a/b/c", "d"):
        (place / name).mkdir(parents=True)
    (place / "a" / "link").symlink_to(outside)
    (place / "a" / "b" / "file").hardlink_to(outside / "kept")
    os.mkfifo(place / "a" / "b" / "pipe")
    (place / os.fsdecode(b"\xff\n")).write_text("")
    for name in ("a/b/c", "a/b", "a"):
        (place / name).chmod(0)
    assert remove_all(place)
    assert [path.name for path in tmp_path.iterdir()] == ["outside"]
    assert (outside / "kept").read_text() == "kept"
    assert stat.S_IMODE(outside.stat().st_mode) & 0o700 == 0o700


def test_a_file_and_what_is_not_there_are_gone_afterwards(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    held = os.open(tmp_path, os.O_RDONLY)
    try:
        assert remove_all("file", dir_fd=held)
        assert remove_all("file", dir_fd=held)
    finally:
        os.close(held)
    assert [*tmp_path.iterdir()] == []


def test_what_stays_is_named_in_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "c").write_text("")
    rmdir = os.rmdir

    def busy(path: str, *, dir_fd: int | None = None) -> None:
        if path != "b":
            return rmdir(path, dir_fd=dir_fd)
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr(os, "rmdir", busy)  # as for a place where something is mounted
    assert not remove_all(tmp_path / "a")
    assert caplog.messages == [
        f"{tmp_path / 'a'} could not be removed: [Errno 16] Device or resource busy. Remove it by hand."
    ]
    assert not (tmp_path / "a" / "c").exists()


@pytest.mark.thorough("a very deep tree")
def test_a_walk_goes_as_deep_as_paths_do_and_says_where_these_end(tmp_path: Path) -> None:
    from ikigai_actors import BadInput

    nest(tmp_path / "some", 1_200)
    assert sum(1 for _ in paths_beneath(tmp_path / "some")) == 1_200
    nest(tmp_path / "deep", 1_600)
    with pytest.raises(BadInput, match="is nested too deeply for a path"):
        list(paths_beneath(tmp_path / "deep"))
    assert remove_all(tmp_path / "some")
    assert remove_all(tmp_path / "deep")  # pytest's own removal would recurse


def test_a_removal_that_takes_too_long_leaves_the_rest_and_its_lock_to_a_later_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    nest(tmp_path / "left" / "deep", 100)
    (tmp_path / "left" / "lock").write_text("")
    assert not remove_all(tmp_path / "left", seconds=0)
    assert (tmp_path / "left" / "lock").exists()
    assert caplog.messages == []
    assert remove_all(tmp_path / "left")


def test_several_remove_a_directory_at_once_and_none_warns(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("a", "b", "c"):
        nest(tmp_path / "left" / name, 60)
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(remove_all, [tmp_path / "left"] * 3))
    assert caplog.messages == []
    assert not (tmp_path / "left").exists()
