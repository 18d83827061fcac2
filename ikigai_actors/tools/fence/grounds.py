"""Facts about this machine that the policy of a fence needs."""

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from ikigai_actors.tools.base import HostPaths
from ikigai_actors.tools.fence.policy import OF_ETC, SECRETS, SYSTEM, TOOLCHAINS, Grounds, is_beneath


def grounds(paths: HostPaths, workspace: str | None, environ: Mapping[str, str] = os.environ) -> Grounds:
    """Collect the facts about this machine.

    Args:
        paths: the host's own files.
        workspace: the directory in which programs start, with links resolved.
        environ: environment variables, of which ``PATH`` is used.
    """
    home = os.path.realpath(Path("~").expanduser())
    state = os.path.realpath(paths.state)
    secrets = [state, *map(os.path.realpath, paths.secrets), *(os.path.realpath(f"{home}/{name}") for name in SECRETS)]
    system = [*SYSTEM, *(f"/etc/{name}" for name in OF_ETC)]
    return Grounds(
        home=home,
        state=state,
        secrets=tuple(dict.fromkeys(secrets)),
        system=tuple((path, resolved) for path in system if (resolved := real(path)) is not None),
        programs=_programs(home, environ.get("PATH", "")),
        repository=None if workspace is None else repository_of(Path(workspace)),
        own_code=_own_code(),
    )


def real(path: str) -> str | None:
    """Resolve the links of a path; None when the path does not exist."""
    try:
        return os.path.realpath(path, strict=True)
    except OSError:
        return None


def names_in(directory: str) -> list[str]:
    """Return the names in a directory, except links, which may lead to a secret; empty if it cannot be read."""
    try:
        return [place.name for place in Path(directory).iterdir() if not place.is_symlink()]
    except OSError:
        return []


def interpreter() -> str:
    """Return the path of the Python that runs this program.

    Links are resolved, so that no link in a workspace decides which Python is used.
    """
    return os.path.realpath(sys.executable)


def search_path(path: str) -> str:
    """Return ``PATH`` with links resolved, because in the fence the links may lead nowhere."""
    return ":".join(dict.fromkeys(os.path.realpath(place) for place in path.split(":") if place.startswith("/")))


def _programs(home: str, path: str) -> tuple[str, ...]:
    """Return the directories of further programs than the system's, and of the libraries beside them."""
    places = [real(place) for place in path.split(":") if place.startswith("/")]
    prefixes = [sys.prefix, sys.base_prefix, sys.exec_prefix, str(Path(interpreter()).parents[1])]
    roots = dict.fromkeys(map(real, prefixes))
    for place in places:
        if place is None:
            continue
        toolchain = next((name for name in TOOLCHAINS if is_beneath(place, f"{home}/{name}")), None)
        if toolchain is not None:
            roots |= dict.fromkeys(map(real, (f"{home}/{toolchain}", *([f"{home}/.rustup"] * (toolchain == ".cargo")))))
            continue
        above, _, last = place.rpartition("/")
        beside = ("lib", "lib64", "libexec") if last == "bin" and above != home else ()
        roots |= dict.fromkeys([place, *(real(f"{above}/{name}") for name in beside)])
    return tuple(place for place in roots if place is not None and not is_beneath(home, place))


def repository_of(workspace: Path) -> str | None:
    """Return the common directory of the repository of which a directory is a worktree; None if it is no worktree.

    An agent can write anything into ``.git`` of its workspace. So the repository must list this worktree.
    """
    try:
        kind, _, text = (workspace / ".git").read_text(encoding="utf-8").strip().partition(": ")
        own = (workspace / text).resolve(strict=True)
        named = Path((own / "gitdir").read_text(encoding="utf-8").strip())
        common = (own / (own / "commondir").read_text(encoding="utf-8").strip()).resolve(strict=True)
    except (OSError, UnicodeDecodeError):
        return None
    genuine = kind == "gitdir" and own.parent == common / "worktrees" and (common / "objects").is_dir()
    return str(common) if genuine and named.resolve() == (workspace / ".git").resolve() else None


def _own_code() -> tuple[str, ...]:
    package = Path(__file__).parents[2]
    prefixes = (sys.prefix, sys.base_prefix, Path(interpreter()).parents[1])
    places: Iterable[str | Path] = (*prefixes, package, package.parent / "supervisors", *sys.path)
    resolved = (real(os.fspath(place) or ".") for place in places)
    return tuple(dict.fromkeys(place for place in resolved if place is not None))
