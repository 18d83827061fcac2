"""Skills on a disk: what their files say, leniently, and which are found below a place."""

from pathlib import Path

import pytest

from ikigai_actors.errors import BadInput
from ikigai_actors.tools.skills import folders
from ikigai_actors.tools.skills.folders import find_skills, read_skill, usual_places
from ikigai_actors.tools.skills.front_matter import read_front_matter


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("name: pdf", "pdf"),
        ("name:   'it''s'   ", "it's"),
        ('name: "a \\"b\\" c"', 'a "b" c'),
        ("name: Use it: when a form comes", "Use it: when a form comes"),
        ("name: pdf # the best", "pdf"),
        ("name: one\n  two\n  three", "one two three"),
        ("name: >\n  one\n  two\n\n  three", "one two\n\nthree"),
        ("name: |-\n  one\n  two", "one\ntwo"),
        ("# a comment\nother: x\nname: pdf\nmetadata:\n  name: inner", "pdf"),
        ("other: x", ""),
        ("name: [a, b]", ""),
    ],
)
def test_a_text_is_read_as_other_programs_read_it(head: str, expected: str) -> None:
    assert read_front_matter(f"\ufeff---\n{head}\n---\nbody\n").text("name") == expected


@pytest.mark.parametrize(
    "head",
    ["tools: Bash(git add *), Read", "tools: Bash(git add *) Read", "tools:\n  - Bash(git add *)\n  - Read"],
)
def test_tools_are_a_list_or_a_text(head: str) -> None:
    assert read_front_matter(f"---\n{head}\n---\n").texts("tools") == ("Bash(git add *)", "Read")


@pytest.mark.parametrize("text", ["", "# No front matter", "---\nname: x\n"])
def test_a_file_without_a_front_matter_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="begin with a line ---"):
        read_front_matter(text)


def write(place: Path, text: str = "description: d") -> Path:
    place.mkdir(parents=True, exist_ok=True)
    (place / "SKILL.md").write_text(f"---\n{text}\n---\nbody", encoding="utf-8")
    return place


def test_of_two_of_a_name_the_later_counts_and_what_is_left_out_is_said(tmp_path: Path) -> None:
    write(tmp_path / "one" / "pdf", "name: pdf\ndescription: first")
    write(tmp_path / "two" / "deep" / "folder", "name: pdf\ndescription: second")
    write(tmp_path / "two" / "csv")
    write(tmp_path / "two" / "csv" / "within")
    write(tmp_path / "two" / "mute", "name: mute")
    write(tmp_path / "two" / ".git" / "hidden")
    (tmp_path / "two" / "link").symlink_to(tmp_path / "one", target_is_directory=True)
    listing = find_skills([tmp_path / "one", tmp_path / "two"])
    assert [(skill.name, skill.description) for skill in listing.skills] == [("csv", "d"), ("pdf", "second")]
    shadowed, mute = sorted(listing.troubles)
    assert "is shadowed by that of" in shadowed
    assert mute.endswith("is left out: its SKILL.md has no description.")
    with pytest.raises(BadInput, match="Expected a directory with skills"):
        find_skills([tmp_path / "none"])


def test_the_digest_changes_with_each_byte_path_and_mode(tmp_path: Path) -> None:
    skill = write(tmp_path / "pdf")
    (skill / "run.sh").write_text("echo 1", encoding="utf-8")
    digests = [read_skill(skill).sha256]
    (skill / "run.sh").chmod(0o755)
    digests.append(read_skill(skill).sha256)
    (skill / "run.sh").write_text("echo 2", encoding="utf-8")
    digests.append(read_skill(skill).sha256)
    (skill / "run.sh").rename(skill / "go.sh")
    digests.append(read_skill(skill).sha256)
    assert len(set(digests)) == 4
    assert read_skill(skill).sha256 == digests[-1]


def test_what_is_too_large_is_left_out(tmp_path: Path) -> None:
    skill = write(tmp_path / "pdf")
    for number in range(folders.MOST_FILES):
        (skill / f"{number}").write_text("x", encoding="utf-8")
    [trouble] = find_skills([tmp_path]).troubles
    assert "more than 200 files" in trouble


def test_a_workspace_has_the_places_from_its_repository_s_root_on(tmp_path: Path) -> None:
    inner = tmp_path / "repo" / "src"
    inner.mkdir(parents=True)
    (tmp_path / "repo" / ".git").mkdir()
    expected = [tmp_path / "repo" / ".claude" / "skills", inner / ".agents" / "skills"]
    for place in (*expected, tmp_path / ".claude" / "skills"):
        place.mkdir(parents=True)
    assert usual_places(inner)[-2:] == expected


def test_packages_offer_directories_and_one_that_fails_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    name = f"offers_{tmp_path.name}"
    (tmp_path / "offered").mkdir()
    text = f"import sys\nPLACE = {str(tmp_path / 'offered')!r}\ndef place(): return PLACE\ndef leaves(): sys.exit(3)\n"
    (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    info = tmp_path / "acme-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n", encoding="utf-8")
    points = f"a = {name}:leaves\nb = {name}:missing\nc = {name}:place\nd = {name}:PLACE\ne = sys:maxsize\n"
    (info / "entry_points.txt").write_text(f"[{folders.SKILL_GROUP}]\n{points}", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert tmp_path / "offered" in usual_places()
    left_out = [record.args[0] for record in caplog.records if isinstance(record.args, tuple)]
    assert left_out == ["a", "b", "e"]
