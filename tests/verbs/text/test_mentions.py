"""Files that a prompt mentions."""

from pathlib import Path

import pytest

from ikigai_actors import BadInput
from ikigai_actors.verbs.text.mentions import attachments_in, files_in, is_command
from tests.kit.pictures import PDF, PNG


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, data in (("plan.png", PNG), ("my plan.png", PNG), ("a.pdf", PDF), ("notes.txt", b"text")):
        (tmp_path / name).write_bytes(data)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("What is wrong in @plan.png?", ["plan.png"]),
        ("(@a.pdf), @plan.png and @a.pdf.", ["a.pdf", "plan.png"]),
        ('Look at @"my plan.png"!', ["my plan.png"]),
        ("Look at @my\\ plan.png", ["my plan.png"]),
        ("plan.png, someone@plan.png, @notes.txt, @nobody, @fork {}, 'plan.png'", []),
        ("", []),
    ],
)
def test_words_that_begin_with_an_at_sign_and_name_a_file_are_mentions(
    directory: Path, text: str, names: list[str]
) -> None:
    assert files_in(text) == [Path(name) for name in names]


@pytest.mark.parametrize("form", ["{0}/plan.png", "'{0}/my plan.png'", "{0}/my\\ plan.png", "file://{0}/my%20plan.png"])
def test_a_path_that_was_pasted_or_dropped_is_a_mention(directory: Path, form: str) -> None:
    text = form.format(directory)
    [path] = files_in(text)
    assert path.read_bytes() == PNG
    assert not is_command(text)
    assert not is_command(f"{text} What is this?")
    assert [attachment.media for attachment in attachments_in(f"What is {text}")] == ["image/png"]


@pytest.mark.parametrize("line", ["/help", "/fork look at @plan.png", "/nowhere/plan.png", "/", "/send a /tmp"])
def test_a_command_is_none(directory: Path, line: str) -> None:
    assert is_command(line)


def test_a_picture_that_is_not_there_is_told(directory: Path) -> None:
    with pytest.raises(BadInput, match=r"no file 'paln.png\?'"):
        files_in("What is in @paln.png?")
    (directory / "text.png").write_bytes(b"text")
    with pytest.raises(BadInput, match="There is no file"):
        files_in("@text.png")
