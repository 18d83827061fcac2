"""A complete fence, with which programs are started.

    enclosure = open_enclosure(fence, host_paths, "/home/ann/src", passed_on)     # None where there is none
    process.spawn(command, fence=enclosure.launch(agent), environment=enclosure.environment(agent))

An enclosure has the launcher and the environment for programs, and a description of the fence for people.
"""

import os
import secrets
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ikigai_actors.errors import BadInput
from ikigai_actors.tools.base import HostPaths, Tell
from ikigai_actors.tools.fence.grounds import grounds, names_in, real, search_path
from ikigai_actors.tools.fence.launch import FencedStart, compiled, trial
from ikigai_actors.tools.fence.launcher import HOME, TEMPORARY
from ikigai_actors.tools.fence.policy import (
    TOOLCHAINS,
    Fence,
    Grounds,
    Reach,
    is_beneath,
    reach_of,
    within_worktree,
)
from ikigai_actors.tools.fence.private import PrivateDirectories
from ikigai_actors.tools.fence.seatbelt import seatbelt_profile
from ikigai_actors.tools.fence.tiers import Candidate, Tier, candidates, kernel, shortfall
from ikigai_actors.tools.removal import remove_all
from ikigai_actors.tools.skills.digests import SKILLS_VARIABLE
from ikigai_actors.tools.trees.layers import OPAQUE
from ikigai_actors.tools.trees.places import KERNELS, UPPER, TreePlaces

SKILL_MOUNT = "/skills"
"""The directory in which programs in namespaces find the files of skills."""

_REPLACED = ("HOME", "TMPDIR")
"""Environment variables whose values in the fence differ from those of the host."""

_GIT_SECONDS = 10.0
"""The most seconds to wait for git to print the person's configuration."""

_TRIAL = "trial"
"""The name, in place of an agent's, of the private directory in which a fence is tried out."""


class Enclosure:
    """A fence in use: it starts programs of agents, and has their private directories."""

    def __init__(
        self, reach: Reach, how: Candidate, code: bytes, directories: PrivateDirectories,
        environment: Mapping[str, str], repository: str | None = None,
    ) -> None:  # fmt: skip
        """Make the fence of its parts; see `open_enclosure`."""
        self.reach, self.how, self.repository = reach, how, repository
        self._code, self._directories, self._environment = code, directories, environment

    def launch(self, agent: str, trees: str = "", layers: str = "") -> FencedStart:
        """Return an object that starts a program of an agent; see `FencedStart` for ``trees`` and ``layers``."""
        return replace(
            _start(self.reach, self.how, self._code, self._directories.of(agent)), trees=trees, layers=layers
        )

    def without_layers(self, places: TreePlaces) -> str:
        """Return the reason why the workspace cannot be mounted through layers; empty if it can.

        Starts a program. Blocks.
        """
        if not self.how.namespaces:
            return "it needs namespaces (`ikigai doctor` shows how to allow them)"
        if self.repository is not None:
            return f"the workspace is a worktree of {self.repository}, which agents would share"
        place = places.directory / f"{_TRIAL}-{secrets.token_hex(8)}"
        try:
            for name in (UPPER, KERNELS):
                (place / name).mkdir(mode=0o700, parents=True)
            os.setxattr(place / UPPER, OPAQUE, b"n")
            layers = f"{place.name}/{UPPER}:{place.name}/{KERNELS}"
            return trial(self.launch(_TRIAL, str(places.directory), layers), self._environment)
        except OSError as error:
            return f"files in {places.directory} cannot have attributes ({error.strerror})"
        finally:
            remove_all(place)
            self._directories.remove(_TRIAL)

    def of_worktrees(self) -> "Enclosure":
        """Return the same fence for programs in worktrees of the workspace's repository.

        It is closed with this fence.
        """
        reach = within_worktree(self.reach)
        code = compiled(reach, self.how, self._directories.mount_point)
        return Enclosure(reach, self.how, code, self._directories, self._environment)

    def without_worktrees(self) -> str:
        """Return the reason why agents cannot have worktrees of the workspace; empty if they can."""
        if not self.how.namespaces:
            return "it needs namespaces (`ikigai doctor` shows how to allow them)"
        repository = Path(self.reach.directory, ".git")
        if repository.is_symlink() or not (repository / "objects").is_dir():
            return f"{self.reach.directory} is not the main directory of a repository of git"
        return ""

    def environment(self, agent: str) -> dict[str, str]:
        """Return the environment variables for a program of an agent."""
        private = self._directories.of(agent)
        inside = self.how.namespaces
        home, temporary = (HOME, TEMPORARY) if inside else (str(private / "home"), str(private / "tmp"))
        skills = SKILL_MOUNT if inside else str(self.skills)
        return {"HOME": home, "TMPDIR": temporary, SKILLS_VARIABLE: skills, **self._environment}

    @property
    def skills(self) -> Path:
        """The directory with the files of skills."""
        return self._directories.skills

    @property
    def described(self) -> str:
        """A description of the fence for a model, in a line or two."""
        sentences = ["Partly fenced." if self.how.tier == Tier.NONE else f"Fenced ({self.how.tier})."]
        sentences.append(f"Commands may write {', '.join([*self.reach.writable, '$HOME', '$TMPDIR'])}.")
        if self.reach.network.kind != "all":
            sentences.append(f"Network: {self.reach.network}.")
        if self.how.lacks:
            sentences.append(f"They have no {', no '.join(self.how.lacks)}.")
        return " ".join(sentences)

    def leave(self, agent: str) -> None:
        """Remove the private directory of an agent. Blocks."""
        self._directories.remove(agent)

    def close(self) -> None:
        """Remove all private directories. Blocks."""
        self._directories.close()


def default_paths(environ: Mapping[str, str] = os.environ) -> HostPaths:
    """Return the paths of the host's files, for a toolset that is used without a host."""
    return HostPaths(Path(environ.get("IKIGAI_HOME") or "~/.local/share/ikigai").expanduser())


def open_enclosure(
    fence: Fence,
    paths: HostPaths | None,
    workspace: str | None,
    passed_on: Mapping[str, str],
    base: Mapping[str, str],
    tell: Tell,
) -> Enclosure | None:
    """Make a fence. Blocks.

    Args:
        fence: the rights that a person gives programs.
        paths: the host's own files; None for a toolset that is used without a host.
        workspace: the directory in which programs start; None for their home.
        passed_on: environment variables of this process that programs get, unless the fence sets them itself.
        base: environment variables that a person sets for programs.
        tell: takes sentences for a person about the fence.

    Returns:
        The fence; None when ``auto`` finds none, or the mode is ``none``.

    Raises:
        BadInput: the fence cannot be made, or a directory that programs may reach contains a secret.
    """
    if fence.mode == "none":
        return None
    paths = paths or default_paths()
    environment = {**{name: value for name, value in passed_on.items() if name not in _REPLACED}, **base}
    directory = None if workspace is None else os.path.realpath(workspace)
    ground = grounds(paths, directory, environment)
    reach = reach_of(fence, directory, ground, real, names_in)
    variables = variables_of(environment, reach, ground.home)
    of = kernel()
    search = [
        place
        for place in variables["PATH"].split(":")
        if not any(is_beneath(place, writable) for writable in reach.writable)
    ]
    directories = PrivateDirectories(paths.state, {".gitconfig": git_configuration(search)})
    reach = replace(reach, mounts=(*reach.mounts, (os.path.realpath(directories.skills), SKILL_MOUNT, False)))
    try:
        how, code, failures = first_that_starts(
            candidates(fence.mode, reach.network, of), reach, directories, variables
        )
        if how is not None:
            for warning in _warnings(reach, how, ground):
                tell(warning)
            return Enclosure(reach, how, code, directories, variables, ground.repository)
        why = shortfall(fence.mode, reach.network, of, failures)
        if fence.mode != "auto" or reach.network.kind != "all":
            asked = f"fence={fence.mode!r}" if fence.mode != "auto" else f"network={fence.network!r}"
            raise BadInput(f"{asked} cannot be had: {why}.")
    except BaseException:
        directories.close()
        raise
    directories.close()
    tell(f"No fence holds here, so programs of agents do what you may do: {why}.")
    return None


def first_that_starts(
    among: Sequence[Candidate], reach: Reach, directories: PrivateDirectories, environment: Mapping[str, str]
) -> tuple[Candidate | None, bytes, list[str]]:
    """Try fences in order. Return the first one that starts, its launcher, and the errors of those before it.

    Blocks.
    """
    failures = list[str]()
    for how in among:
        code = b"" if how.tier == Tier.SEATBELT else compiled(reach, how, directories.mount_point)
        failure = trial(_start(reach, how, code, directories.of(_TRIAL)), environment)
        directories.remove(_TRIAL)
        if not failure:
            return how, code, failures
        failures.append(failure)
    return None, b"", failures


def _start(reach: Reach, how: Candidate, code: bytes, private: Path) -> FencedStart:
    """Return an object that starts programs in a fence, with ``private`` as their private directory.

    ``code`` is the compiled launcher.
    """
    profile = seatbelt_profile(reach, os.path.realpath(private)) if how.tier == Tier.SEATBELT else ""
    return FencedStart(code, private, profile=profile)


def _warnings(reach: Reach, how: Candidate, ground: Grounds) -> list[str]:
    warnings = []
    if not how.is_proven:
        warnings.append(f"The fence is not whole. It leaves open: {'; '.join(how.open)}.")
    if reach.missing:
        warnings.append(f"There is no {', '.join(reach.missing)} to read.")
    within = [place for place in ground.own_code if reach.directory and is_beneath(place, reach.directory)]
    writable = [place for place in within if place == reach.directory or not how.namespaces]
    if writable:
        warnings.append(
            f"This program imports modules from {', '.join(writable)}, where agents write: what they put there may run "
            "outside of the fence. Start it elsewhere, or give agents a directory without it."
        )
    return warnings


def variables_of(environment: Mapping[str, str], reach: Reach, home: str) -> dict[str, str]:
    """Return the environment variables of programs, adapted to a fence.

    Args:
        environment: the variables that programs would get without a fence.
        reach: the files and networks that programs may reach.
        home: the person's home, which has toolchains.
    """
    made = {**environment, "PATH": search_path(environment.get("PATH", os.defpath))}
    network, seen = reach.network, [target for _, target, _ in reach.mounts]
    paths = {name: f"{home}/{place}" for place, name in TOOLCHAINS.items() if name}
    made = {name: place for name, place in paths.items() if any(is_beneath(inner, place) for inner in seen)} | made
    if network.kind == "proxy":
        address = f"http://127.0.0.1:{network.ports[0]}"
        made = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), address) | made
    if network.kind == "ports":  # names are asked for by TCP, if port 53 is in the list
        made = {"RES_OPTIONS": "use-vc", **made}
    return made


def git_configuration(search: Sequence[str]) -> str:
    """Return the text of a ``.gitconfig`` for programs: the name for commits, and trust in the workspace's owner.

    The rest of the person's configuration is left out.

    Args:
        search: the directories in which git is looked for. Agents must not be able to write to them.
    """
    made = ["[safe]", "\tdirectory = *"]
    if (git := shutil.which("git", path=":".join(search))) is None:
        return ""
    asked = [git, "config", "--global", "--includes", "--get-regexp", r"^user\.(name|email)$"]
    try:
        ran = subprocess.run(
            asked, capture_output=True, text=True, errors="replace", cwd="/", timeout=_GIT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    for line in ran.stdout.splitlines():
        name, _, value = line.partition(" ")
        quoted = value.replace("\\", "\\\\").replace('"', '\\"')
        made += ["[user]", f'\t{name.removeprefix("user.")} = "{quoted}"']
    return "\n".join([*made, ""])
