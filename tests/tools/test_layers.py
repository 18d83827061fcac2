"""Layers above a directory: what they show, and what a merge makes of them, against directories that are copied."""

import os
import random
import shutil
from pathlib import Path

import pytest

from ikigai_actors.tools.trees.flat import flatten
from ikigai_actors.tools.trees.layers import OPAQUE, WAS_THERE, FileView, touched, was_there
from ikigai_actors.tools.trees.merge import FilePlan, changed_outside, plan_merge, write_directory, write_layer
from tests.kit.file_trees import layer_of, made_up, put, seen, text_at, whiteout

CASES = 60


def test_a_layer_hides_what_it_has_removed_and_what_it_has_replaced(tmp_path: Path) -> None:
    base = put(tmp_path / "base", {"kept": "1", "gone": "2", "d/old": "3", "e/f": "4", "file": "5"})
    layer = put(tmp_path / "layer", {"d/new": "6", "file/inside": "7", "e": "8"})
    whiteout(layer / "gone")
    os.setxattr(layer / "d", OPAQUE, b"y")
    view = FileView([layer], base)
    assert seen(view) == {"kept": "1", "d/new": "6", "file/inside": "7", "e": "8"}
    assert view.names(".") == {"kept", "d", "file", "e"}
    assert view.find("e/f") is view.find("gone") is view.find("d/old") is None
    assert touched([layer], FileView((), base)) == {"gone", "d", "d/old", "d/new", "file", "file/inside", "e", "e/f"}


def test_a_pipe_is_not_merged_and_what_it_replaced_stays(tmp_path: Path) -> None:
    base, layer = put(tmp_path / "base", {"a": "1"}), put(tmp_path / "layer", {"b": "2"})
    os.mkfifo(layer / "a")
    os.mkfifo(layer / "new")
    before, after = FileView((), base), FileView([layer], base)
    assert [change.path for change in plan_merge(before, before, after, ["a", "b", "new"]).changes] == ["b"]


def test_a_link_is_seen_as_a_link_and_not_followed(tmp_path: Path) -> None:
    base = put(tmp_path / "base", {"d/x": "1"})
    (base / "way").symlink_to("d")
    view = FileView((), base)
    assert view.find("way") == base / "way"
    assert view.find("way/x") is None


def test_a_path_is_shown_where_its_links_lead_through_layers(tmp_path: Path) -> None:
    base, layer = put(tmp_path / "base", {"d/x": "1"}), put(tmp_path / "layer", {"e": None})
    links = {"way": "d", "e/up": "../way", "out": "..", "far": "/etc", "back": str(base / "d"), "o": "o"}
    for name, text in links.items():
        (layer / name).symlink_to(text)
    view = FileView([layer], base)
    for path in ("d/x", "way/x", "e/up/x", "back/x", "way/../d/x"):
        assert view.shown(path) == "d/x"
    assert [view.shown(path) for path in ("new/y", "o", ".")] == ["new/y", "o", "."]
    assert view.shown("out/z") == str(tmp_path / "z")
    assert view.shown("far/passwd") == "/etc/passwd"


@pytest.mark.sample(15, "a random tree each")
@pytest.mark.parametrize("seed", range(CASES))
def test_a_layer_of_what_differs_shows_the_other_directory(tmp_path: Path, seed: int) -> None:
    drawn = random.Random(seed)
    base, *others = (put(tmp_path / str(number), dict(made_up(drawn))) for number in range(4))
    layers: list[Path] = []
    for number, other in enumerate(others):
        before = FileView(layers, base)
        layer_of(tmp_path / f"layer{number}", before, other)
        layers.insert(0, tmp_path / f"layer{number}")
        assert seen(FileView(layers, base)) == seen(FileView((), other))
    flatten(layers, tmp_path / "flat")
    assert seen(FileView([tmp_path / "flat"], base)) == seen(FileView((), others[-1]))
    written = shutil.copytree(base, tmp_path / "written")
    plain = FileView((), base)
    write_directory(written, plan_merge(plain, plain, FileView(layers, base), touched(layers, plain)))
    assert seen(FileView((), written)) == seen(FileView((), others[-1]))


@pytest.mark.sample(15, "a random tree each")
@pytest.mark.parametrize("seed", range(CASES))
def test_a_merge_takes_what_one_side_has_changed_or_nothing_where_both_have(tmp_path: Path, seed: int) -> None:
    drawn = random.Random(seed)
    base, ours, theirs = (put(tmp_path / str(number), dict(made_up(drawn))) for number in range(3))
    before, here, there = (FileView((), each) for each in (base, ours, theirs))
    paths = {path for view in (before, here, there) for path in view.beneath(".")} - {"."}
    plan = plan_merge(before, here, there, paths)
    for path in paths:
        common, mine, new = (text_at(each / path) for each in (base, ours, theirs))
        if new not in (common, mine) and common == mine:
            assert path in {change.path for change in plan.changes}
        if new not in (common, mine) and common != mine:
            assert path in plan.conflicts
    if plan.conflicts:
        return
    write_layer(tmp_path / "layer", plan, here)
    after = FileView([tmp_path / "layer"], ours)
    for path in paths:
        text_ats, mine, new = (text_at(each / path) for each in (base, ours, theirs))
        if any(change.theirs and change.path.startswith(f"{path}/") for change in plan.changes):
            continue  # a directory that one side has removed is there again for what the other has put there
        got = after.find(path)
        assert (None if got is None else text_at(got)) == (mine if new == text_ats else new), path


def test_what_a_parent_has_put_into_a_directory_that_the_child_removed_is_a_conflict(tmp_path: Path) -> None:
    base = put(tmp_path / "base", {"d/x": "1"})
    ours, theirs = put(tmp_path / "ours", {"d/x": "1", "d/mine": "2"}), put(tmp_path / "theirs", {})
    plan = plan_merge(FileView((), base), FileView((), ours), FileView((), theirs), {"d", "d/x"})
    assert plan.conflicts == ("d/mine",)


def test_what_a_child_has_put_into_a_directory_that_the_parent_replaced_is_a_conflict(tmp_path: Path) -> None:
    base = put(tmp_path / "base", {"d/x": "1"})
    ours, theirs = put(tmp_path / "ours", {"d": "file"}), put(tmp_path / "theirs", {"d/x": "1", "d/new": "2"})
    plan = plan_merge(FileView((), base), FileView((), ours), FileView((), theirs), {"d", "d/x", "d/new"})
    assert "d" in plan.conflicts


def test_what_somebody_changed_in_the_directory_since_then_is_found(tmp_path: Path) -> None:
    base = put(tmp_path / "base", {"early": "1", "late": "2"})
    layer = put(tmp_path / "layer", {"early": "3", "late": "3", "new": "3"})
    view, directory = FileView([layer], base), FileView((), base)
    plan = plan_merge(directory, directory, view, {"early", "late", "new"})
    now = (base / "late").stat().st_ctime_ns // 1_000_000
    assert changed_outside(plan, directory, now) == ()
    assert changed_outside(plan, directory, now - 60_000) == ("early", "late")


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    base, outside = put(tmp_path / "base", {}), put(tmp_path / "outside", {})
    theirs = put(tmp_path / "theirs", {"way/x": "1"})
    plan = plan_merge(FileView((), base), FileView((), base), FileView((), theirs), {"way", "way/x"})
    (base / "way").symlink_to(outside)
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        write_directory(base, FilePlan(plan.changes[1:], ()))
    assert list(outside.iterdir()) == []


def test_rights_and_links_come_along(tmp_path: Path) -> None:
    base, theirs = put(tmp_path / "base", {"run": "1"}), put(tmp_path / "theirs", {"run": "1"})
    (theirs / "run").chmod(0o755)
    (theirs / "way").symlink_to("run")
    plan = plan_merge(FileView((), base), FileView((), base), FileView((), theirs), {"run", "way"})
    write_layer(tmp_path / "layer", plan, FileView((), base))
    write_directory(base, plan)
    for place in (tmp_path / "layer", base):
        assert (place / "run").stat().st_mode & 0o777 == 0o755
        assert (place / "way").readlink() == Path("run")


def test_one_layer_of_many_hides_what_they_hide_and_others_keep_their_marks(tmp_path: Path) -> None:
    low, middle, top = (put(tmp_path / name, {}) for name in ("low", "middle", "top"))
    put(low, {"d/low": "1", "e": "2", "f": "3"})
    whiteout(low / "gone")
    os.setxattr(low / "f", WAS_THERE, b"x")
    put(middle, {"d": "4"})
    whiteout(middle / "e")
    put(top, {"d/top": "5", "e/new": "6"})
    os.mkfifo(top / "pipe")
    flatten([top, middle, low], tmp_path / "flat")
    flatten([top, middle, low], tmp_path / "flat")
    base = put(tmp_path / "base", {"d/base": "7", "e/base": "8", "gone": "9"})
    assert (tmp_path / "flat" / "pipe").is_fifo()
    (tmp_path / "flat" / "pipe").unlink()
    assert seen(FileView([tmp_path / "flat"], base)) == {"d/top": "5", "e/new": "6", "f": "3"}
    assert was_there(tmp_path / "flat" / "f")
    assert sorted(place.name for place in tmp_path.iterdir()) == ["base", "flat", "low", "middle", "top"]
