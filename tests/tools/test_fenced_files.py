"""The file tools of a workspace reach nothing that bash may not: no secret, no key, no memory, no protected name."""

import asyncio
import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ikigai_actors import Workspace
from ikigai_actors.tools.fence.policy import Fence
from ikigai_actors.tools.function import Tool
from ikigai_actors.tools.workspace.beneath import Root, acting_top
from ikigai_actors.tools.workspace.grep import grep_tool
from tests.kit.fences import ENVIRONMENT, Scene, enclosed, scene

pytestmark = pytest.mark.slow("starts programs in fences")

SECRETS = ("s3cr3t", "k3y", "another's", "PATH=")
"""What is outside."""


@pytest.fixture
def of(tmp_path: Path) -> Iterator[Scene]:
    with scene(tmp_path) as made:
        yield made


def reached(of: Scene) -> list[str]:
    """The paths outside that an attempt may name, in each way in which it may name them."""
    outside = [str(of.targets[name]) for name in ("secret", "database", "key", "in_tmp", "victim_file")]
    outside += ["/etc/shadow", "/proc/self/environ", f"/proc/{os.getpid()}/environ", "/proc/self/mem", "/dev/mem"]
    paths = [*outside, *(os.path.relpath(path, of.work) for path in outside)]
    for number, path in enumerate(outside):
        (of.work / f"link{number}").symlink_to(path)
        (of.work / f"above{number}").symlink_to(Path(path).parent)
        paths += [f"link{number}", f"above{number}/{Path(path).name}"]
    return paths


def used(tool: Tool, **arguments: Any) -> str:
    done = asyncio.run(tool.call_async(arguments)) if tool.is_async else tool.call(arguments)
    assert done.is_error or done.content == "no matches"
    return done.content


def test_no_file_tool_reads_or_writes_what_is_outside(of: Scene) -> None:
    workspace = Workspace(of.work)
    workspace.host_paths = of.paths
    tools = {tool.name: tool for tool in asyncio.run(workspace.open(print))}
    said = []
    for path in reached(of):
        said.append(used(tools["read"], file_path=path))
        said.append(used(tools["write"], file_path=path, content="mine"))
        said.append(used(tools["edit"], file_path=path, old_string="s3cr3t", new_string="mine"))
        said.append(used(tools["grep"], pattern=".", path=path))
    said += [used(tools["grep"], pattern="s3cr", path=above) for above in (str(of.outside), "../outside", "above0")]
    said.append(used(tools["grep"], pattern="s3cr3t"))  # in all that is beneath the directory, also by links
    assert not [text for text in said if any(secret in text for secret in SECRETS)]
    assert not [file for file in of.outside.iterdir() if file.is_file() and "mine" in file.read_text()]
    asyncio.run(workspace.close())


@pytest.mark.sample(1, "a tool each")
@pytest.mark.parametrize("path", [".git/hooks/x", ".git/config", ".vscode/settings.json", "x/../.git/hooks/x"])
def test_no_file_tool_writes_a_protected_name(of: Scene, path: str) -> None:
    workspace = Workspace(of.work)
    workspace.host_paths = of.paths
    (of.work / "x").mkdir()
    tools = {tool.name: tool for tool in asyncio.run(workspace.open(print))}
    used(tools["write"], file_path=path, content="mine")
    assert not (of.work / path).exists() or (of.work / path).read_text() != "mine"
    asyncio.run(workspace.close())


HOSTILE = """#!/bin/sh
for top in /dev/fd/[0-9]*; do printf './x\\0001:%s\\n' "$(cat "$top/../secret" 2> /dev/null)"; done
for path in $(cat targets); do printf './x\\0001:%s\\n' "$(cat "$path" 2> /dev/null)"; done
env | grep SECRET
printf './x\\0001:mine\\n' >> {victim}
"""
"""A ripgrep that reads and writes what it can."""


@pytest.mark.sample(1, "attempts")
@pytest.mark.parametrize(("mode", "forked"), [("required", False), ("required", True), ("landlock", False)])
def test_a_ripgrep_that_was_taken_over_gets_out_of_nothing(of: Scene, mode: str, forked: bool, tmp_path: Path) -> None:
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    (scripts / "rg").write_text(HOSTILE.format(victim=of.targets["victim_file"]))
    (scripts / "rg").chmod(0o755)
    paths = [str(of.targets[name]) for name in ("secret", "database", "key", "in_tmp")]
    (of.work / "targets").write_text("\n".join([*paths, f"/proc/{of.targets['victim']}/environ", "targets"]))
    root, top = Root(of.work), None
    if forked:  # as an agent sees it whose files have forked: elsewhere
        (of.outside / "top").mkdir()
        (of.outside / "top" / "targets").write_text("targets")
        top = os.open(of.outside / "top", os.O_PATH)
    for fence, closed in ((Fence(mode=mode, read=[scripts]), True), (None, False)):
        made = enclosed(of, fence) if fence is not None else contextlib.nullcontext()
        with made as enclosure:
            tool = grep_tool(root, {**ENVIRONMENT, "SECRET": "s3cr3t"}, str(scripts), enclosure)
            assert tool is not None
            held = acting_top.set(top)
            said = asyncio.run(
                tool.call_async({"pattern": "x", "path": "." if forked and closed else "targets"})
            ).content
            acting_top.reset(held)
        assert "targets" in said
        assert closed == (not any(secret in said.replace("outside/secret", "") for secret in SECRETS)), said
        assert closed == ("mine" not in Path(str(of.targets["victim_file"])).read_text())
