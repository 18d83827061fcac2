"""The files of skills on a disk: commands find them where the result of load_skill says, as they were pinned."""

import re
import stat
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import pytest

from ikigai_actors import ActorSystem, Reply, Request, ScriptedProvider, ToolCall, Workspace
from ikigai_actors.records.messages.skills import pinned
from ikigai_actors.tools.function import ToolError
from ikigai_actors.tools.skills.digests import directory_of
from ikigai_actors.tools.skills.folders import read_skill
from ikigai_actors.tools.workspace.skill_files import lay_out_skills
from tests.kit.blocking_provider import DEADLINE

SCRIPT = "#!/bin/sh\necho filled-$1\n"


def skill_at(place: Path) -> Path:
    folder = place / "pdf"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: pdf\ndescription: Fills forms.\n---\nRun it.\n", encoding="utf-8")
    (folder / "scripts" / "fill.sh").write_text(SCRIPT, encoding="utf-8")
    (folder / "scripts" / "fill.sh").chmod(0o755)
    return folder


class Runner:
    """A model that runs each prompt as a command of bash, with the place of the skill that it has loaded."""

    def __init__(self) -> None:
        self.place = ""
        self.results: list[str] = []

    def answer(self, request: Request) -> Reply:
        last = request.messages[-1]["content"][0]
        if last["type"] == "tool_result":
            text = str(last["content"])
            self.results.append(text)
            if match := re.search(r"\$IKIGAI_SKILLS/[\w-]+", text):
                self.place = match[0]
            return Reply("ok")
        word = str(request.messages[-1]["content"][-1]["text"])
        if word == "load":
            return Reply(tool_calls=(ToolCall("load_skill", {"name": "pdf"}, f"l{len(request.messages)}"),))
        arguments = {"command": word.replace("PLACE", self.place)}
        return Reply(tool_calls=(ToolCall("bash", arguments, f"b{len(request.messages)}"),))


@pytest.mark.sample(1, "tiers of the fence")
@pytest.mark.slow("takes a tenth of a second")
@pytest.mark.parametrize("fence", ["auto", "none"])
def test_a_script_of_a_loaded_skill_runs_as_it_was_pinned_and_cannot_be_written(fence: str, tmp_path: Path) -> None:
    folder, work = skill_at(tmp_path / "skills"), tmp_path / "work"
    work.mkdir()
    model = Runner()
    for number in range(2):  # another host lays the files out again
        with ActorSystem.open(
            tmp_path / "a.db", ScriptedProvider(model.answer), tools=[Workspace(work, fence=fence)], approvals="allow"
        ) as system:
            if number == 0:
                system.root.use_skills(tmp_path / "skills")
                (folder / "scripts" / "fill.sh").write_text("echo EVIL", encoding="utf-8")
                system.root.prompt("load").get(timeout=DEADLINE)
            system.root.prompt("PLACE/scripts/fill.sh 7").get(timeout=DEADLINE)
            assert model.results[-1].endswith("filled-7")
            if fence == "auto":
                system.root.prompt("echo x >> PLACE/scripts/fill.sh").get(timeout=DEADLINE)
                assert "exit code" in model.results[-1]
            child = system.root.fork("PLACE/scripts/fill.sh 8")
            child.reply(timeout=DEADLINE)
            assert model.results[-1].endswith("filled-8")


def test_files_are_laid_out_whole_or_not_at_all_and_never_beside_their_place(tmp_path: Path) -> None:
    entry = pinned(read_skill(skill_at(tmp_path / "skills")).manifest, "here")
    bytes_of = {
        sha256(path.read_bytes()).hexdigest(): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()
    }
    place = tmp_path / "place"
    place.mkdir()

    def reads(files: Mapping[str, bytes]) -> Mapping[str, bytes]:
        return files

    def read(hashes: Sequence[str]) -> Mapping[str, bytes]:
        return reads(bytes_of)

    wrong = dict.fromkeys(bytes_of, b"EVIL")
    for files in ({}, wrong):
        with pytest.raises(ToolError, match="is not in the database as it was pinned"):
            lay_out_skills(place, [entry], lambda hashes, files=files: files)  # type: ignore[misc]
    outside = {**entry, "attached": [{**file, "name": "../../evil"} for file in entry["attached"]]}
    with pytest.raises(ToolError, match="which is not within it"):
        lay_out_skills(place, [pinned(outside, "here")], read)
    assert not (tmp_path / "evil").exists()
    lay_out_skills(place, [entry], read)
    lay_out_skills(place, [entry], lambda hashes: {})  # it is there
    there = place / directory_of(entry)
    assert (there / "scripts" / "fill.sh").read_text() == SCRIPT
    assert stat.S_IMODE((there / "scripts" / "fill.sh").stat().st_mode) == 0o555
    assert stat.S_IMODE((there / "SKILL.md").stat().st_mode) == 0o444
