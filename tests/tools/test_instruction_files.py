"""Instructions of a project on a disk: which files are read, and which are only named."""

from pathlib import Path

from ikigai_actors.tools.skills.instructions import naming_further, read_instructions


def test_the_instructions_of_directories_further_down_are_named_and_not_loaded(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Be terse.", encoding="utf-8")
    for place in ("src/AGENTS.md", "src/CLAUDE.md", "src/api/CLAUDE.md", ".claude/CLAUDE.md", "node_modules/AGENTS.md"):
        write(tmp_path / place)
    write(tmp_path / "a\nb" / "AGENTS.md")
    write(tmp_path / "1/2/3/4/5/6/7" / "AGENTS.md")
    write(tmp_path / "elsewhere.md")
    (tmp_path / "link").symlink_to(tmp_path / "src")
    instructions = read_instructions(tmp_path)
    assert naming_further(instructions, 1_000).text == (
        "Be terse.\n\n"
        "Further instructions are in these files. Before you work in the directory of one of them, read it:\n"
        "src/AGENTS.md\nsrc/api/CLAUDE.md"
    )
    assert naming_further(instructions, len(naming_further(instructions, 1_000).text) - 1).text.endswith(
        ":\nsrc/AGENTS.md"
    )
    assert naming_further(instructions, 20) == instructions
    assert read_instructions(tmp_path / "src" / "api") == naming_further(
        read_instructions(tmp_path / "src" / "api"), 99
    )


def write(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("SECRET-STEP", encoding="utf-8")
