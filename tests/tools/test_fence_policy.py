"""What a fence lets programs reach, and which fences a machine can make, are decided from facts."""

import struct
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ikigai_actors.errors import BadInput
from ikigai_actors.tools.fence.launcher import (
    BY_KIND,
    BY_PROCESS,
    REFUSED_CALLS,
    RIGHTS_CALLS,
    SHARED,
    SPECIAL,
    Instruction,
    landlock_rights,
    landlock_ruleset,
    seccomp_filter,
)
from ikigai_actors.tools.fence.policy import Fence, Grounds, Network, Reach, parse_network, reach_of, without
from ikigai_actors.tools.fence.tiers import Candidate, Kernel, Tier, candidates, shortfall

MAC = Kernel("Darwin", "arm64", seccomp=False, seatbelt=True)
GROUNDS = Grounds(
    home="/home/ann",
    state="/home/ann/.local/share/ikigai",
    secrets=("/home/ann/.local/share/ikigai", "/srv/d.db", "/srv/d.db-wal", "/home/ann/.ssh"),
    system=(("/usr", "/usr"), ("/bin", "/usr/bin"), ("/etc/resolv.conf", "/run/resolve/stub.conf")),
)
TREE = {"/opt": ["app", "tool"], "/opt/app": ["d.db", "d.db-wal", "page"]}


def names(directory: str) -> Iterable[str]:
    return TREE.get(directory, ())


def reach(fence: Fence, workspace: str | None = "/home/ann/src", grounds: Grounds = GROUNDS) -> Reach:
    return reach_of(fence, workspace, grounds, lambda path: None if "missing" in path else path, names)


def test_programs_see_the_system_the_workspace_and_what_is_listed_those_above_first() -> None:
    made = reach(Fence(read=["/srv/docs"], write=["/home/ann/src/inner", "/usr/local/out"]))
    assert made.mounts == (
        ("/usr", "/usr", False),
        ("/run/resolve/stub.conf", "/etc/resolv.conf", False),
        ("/srv/docs", "/srv/docs", False),
        ("/home/ann/src", "/home/ann/src", True),
        ("/usr/local/out", "/usr/local/out", True),
    )
    assert made.links == (("/bin", "usr/bin"),)
    assert made.protect[0] == ("/home/ann/src", ".git/hooks")


@pytest.mark.parametrize(
    ("fence", "workspace", "said"),
    [
        (Fence(), "/srv", "holds /srv/d.db"),
        (Fence(), "/home/ann", "holds /home/ann/.local/share/ikigai"),
        (Fence(), "/home/ann/.ssh/x", "lies in /home/ann/.ssh"),
        (Fence(read=["/"]), "/home/ann/src", "holds"),
        (Fence(read=["/home/ann/.ssh/id"]), "/home/ann/src", "lies in /home/ann/.ssh"),
        (Fence(read=["/srv/d.db-wal"]), "/home/ann/src", "holds /srv/d.db-wal"),
        (Fence(write=["/home/ann/.local/share/ikigai/x"]), "/home/ann/src", "lies in"),
        (Fence(write=["/run"]), "/home/ann/src", "files or sockets of other programs"),
        (Fence(read=["/proc/1"]), "/home/ann/src", "files or sockets of other programs"),
        (Fence(write=["/missing"]), "/home/ann/src", "there is no /missing. Create it"),
    ],
)
def test_a_path_that_leads_to_a_secret_or_to_others_is_refused(fence: Fence, workspace: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        reach(fence, workspace)


def test_a_workspace_may_lie_among_the_files_of_the_host_and_missing_reads_are_told() -> None:
    made = reach(Fence(read=["/missing/docs"]), "/home/ann/.local/share/ikigai/trees/1")
    assert made.writable == ("/home/ann/.local/share/ikigai/trees/1",)
    assert made.missing == ("/missing/docs",)


def test_of_a_system_directory_with_a_secret_all_beside_it_is_seen() -> None:
    assert without("/opt", ["/opt/app/d.db", "/opt/app/d.db-wal"], names) == ["/opt/app/page", "/opt/tool"]
    assert without("/opt", ["/srv"], names) == ["/opt"]
    assert without("/opt/app/page", ["/opt/app"], names) == []


def test_a_worktree_gets_its_repository_with_the_same_names_protected() -> None:
    made = reach(Fence(protect=[".git/hooks", ".envrc"]), grounds=Grounds(repository="/home/ann/main/.git"))
    assert made.writable == ("/home/ann/src", "/home/ann/main/.git")
    assert set(made.protect) == {
        ("/home/ann/src", ".envrc"),
        ("/home/ann/src", ".git"),
        ("/home/ann/main/.git", "hooks"),
    }


def test_what_a_server_or_a_workspace_may_write_elsewhere_keeps_the_same_names() -> None:
    for workspace in (None, "/home/ann/src"):
        made = reach(Fence(write=["/srv/docs"], protect=[".git/hooks"]), workspace)
        assert ("/srv/docs", ".git/hooks") in made.protect


def test_what_this_program_imports_from_a_workspace_stays_as_it_is() -> None:
    grounds = Grounds(own_code=("/home/ann/src", "/home/ann/src/.venv", "/usr/lib/python3"))
    assert reach(Fence(protect=()), grounds=grounds).protect == (("/home/ann/src", ".venv"),)


@pytest.mark.parametrize(
    ("form", "meant"),
    [
        ("all", Network()),
        ("none", Network("none")),
        ([443, 5432, 443], Network("ports", (443, 5432))),
        ("443,5432", Network("ports", (443, 5432))),
        ("proxy:3128", Network("proxy", (3128,))),
    ],
)
def test_the_forms_of_a_network(form: object, meant: Network) -> None:
    assert parse_network(form) == meant


@pytest.mark.parametrize("form", ["some", "proxy:", "proxy:0", "proxy:x", [], [0], [65536], [True], ["x"], 443, None])
def test_a_network_of_no_form_is_refused_with_the_forms(form: Any) -> None:
    with pytest.raises(BadInput, match='Expected network to be "all", "none", a list of ports'):
        Fence(network=form)


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "strong"},
        {"read": "/usr"},
        {"write": [""]},
        {"write": [3]},
        {"protect": ".git"},
        {"protect": ["../x"]},
        {"protect": ["/etc"]},
    ],
)
def test_bad_arguments_of_a_fence_are_refused(options: Any) -> None:
    with pytest.raises(BadInput, match="Expected "):
        Fence(**options)


def test_a_relative_path_is_one_of_the_directory_in_which_the_fence_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Fence(read=["docs"], write=[Path("out")]) == Fence(read=[tmp_path / "docs"], write=[tmp_path / "out"])


NAMESPACES, LANDLOCK, NONE = Tier.NAMESPACES, Tier.LANDLOCK, Tier.NONE


@pytest.mark.parametrize("version", range(12))
def test_each_version_of_landlock_has_its_tier(version: int) -> None:
    of = Kernel(landlock=version)
    used = min(version, 9)
    whole = Candidate(NAMESPACES, True, used, version >= 6)
    alone = Candidate(LANDLOCK if version >= 6 else NONE, False, used, version >= 9)
    assert candidates("auto", Network(), of) == ((whole, alone) if version else (whole,))
    assert candidates("required", Network(), of) == (whole,)
    assert candidates("landlock", Network(), of) == ((alone,) if version >= 6 else ())
    assert candidates("required", Network("ports", (1,)), of) == ((whole,) if version >= 4 else ())
    assert candidates("landlock", Network("ports", (1,)), of) == ()
    assert [candidate.unix_sockets for candidate in candidates("required", Network("none"), of)] == [True]
    assert ("abstract UNIX sockets" in alone.open) == (version < 6)
    assert ("ports" in alone.open) == (version < 4)


@pytest.mark.parametrize(
    ("of", "mode", "failures", "said"),
    [
        (Kernel(system="Darwin"), "required", (), "none on Darwin"),
        (MAC, "required", (), "unproven by us. Use a container"),
        (MAC, "auto", ("sandbox_apply: refused",), "(sandbox_apply: refused)"),
        (Kernel(system="Windows"), "required", (), "WSL 2"),
        (Kernel(machine="riscv64"), "required", (), "this is riscv64"),
        (Kernel(seccomp=False), "required", (), "CONFIG_SECCOMP_FILTER"),
        (Kernel(landlock=3), "landlock", (), "version 6 is needed, and this kernel has version 3"),
        (Kernel(), "landlock", (), "switched off"),
        (Kernel(strongest="none"), "required", (), "Unset it"),
        (
            Kernel(landlock=7),
            "required",
            ("unshare: Operation not permitted",),
            "apparmor_restrict_unprivileged_userns",
        ),
    ],
)
def test_a_machine_without_the_fence_says_what_is_missing_and_how_it_is_had(
    of: Kernel, mode: str, failures: tuple[str, ...], said: str
) -> None:
    assert said in shortfall(mode, Network(), of, failures)


@pytest.mark.parametrize("network", [Network(), Network("none"), Network("ports", (443,)), Network("proxy", (3128,))])
def test_macos_has_its_own_sandbox_which_counts_as_unproven(network: Network) -> None:
    [candidate] = candidates("auto", network, MAC)
    assert (candidate.tier, candidate.is_proven, candidate.namespaces, candidate.landlock) == (
        Tier.SEATBELT,
        False,
        False,
        0,
    )
    assert "unproven by us" in candidate.open[0]
    for mode in ("required", "landlock", "none"):
        assert candidates(mode, network, MAC) == ()
    assert candidates("auto", network, replace(MAC, strongest="none")) == ()


def test_a_fence_that_may_be_no_stronger_is_none_stronger() -> None:
    assert [
        candidate.tier for candidate in candidates("auto", Network(), Kernel(landlock=7, strongest="landlock"))
    ] == [LANDLOCK]
    assert candidates("auto", Network(), Kernel(landlock=7, strongest="none")) == ()


@pytest.mark.parametrize(
    ("version", "bits", "size"),
    [(1, 13, 8), (2, 14, 8), (3, 15, 8), (4, 15, 16), (5, 16, 16), (6, 16, 24), (9, 17, 24)],
)
def test_landlock_is_asked_for_what_its_version_knows(version: int, bits: int, size: int) -> None:
    assert landlock_rights(version) == (1 << bits) - 1
    made = landlock_ruleset(version, tcp=True)
    assert made == struct.pack("=QQQ", (1 << bits) - 1, 3, 3)[:size]


def run(program: list[Instruction], machine: str, call: int, *arguments: int) -> int:
    """What a filter answers."""
    words = {0: call, 4: {"x86_64": 0xC000003E, "aarch64": 0xC00000B7, "i386": 0x40000003}[machine]}
    words |= {16 + 8 * at: value & 0xFFFFFFFF for at, value in enumerate(arguments)}
    at = held = 0
    while True:
        code, yes, no, value = program[at]
        at += 1
        match code:
            case 0x20:
                held = words.get(value, 0)
            case 0x54:
                held &= value
            case 0x06:
                return value
            case 0x15:
                at += yes if held == value else no
            case 0x35:
                at += yes if held >= value else no
            case 0x45:
                at += yes if held & value else no
            case _:
                raise AssertionError(code)


ALLOWED, KILLED, REFUSED = 0x7FFF0000, 0x80000000, 0x50000


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_refuses_what_it_lists_and_nothing_else(machine: str) -> None:
    column = 0 if machine == "x86_64" else 1
    whole = seccomp_filter(machine, "all", unix_sockets=True, alone=False)
    alone = seccomp_filter(machine, "none", unix_sockets=False, alone=True)
    ports = seccomp_filter(machine, "ports", unix_sockets=True, alone=False)
    refused = {numbers[column] for numbers in REFUSED_CALLS.values()} - {-1}
    shared = {numbers[column] for numbers in SHARED.values()}
    by_number = {numbers[column] for numbers in (*BY_PROCESS.values(), *BY_KIND.values())} - {
        BY_KIND["ioprio_set"][column]
    }
    special = {name: numbers[column] for name, numbers in SPECIAL.items()}
    modes = {numbers[column]: numbers[2:] for numbers in RIGHTS_CALLS.values() if numbers[column] >= 0}
    for number in range(500):
        if number in (special["clone3"], special["openat2"]):
            assert run(whole, machine, number) == REFUSED | 38
        elif number not in {*special.values(), *modes}:
            assert (run(whole, machine, number) != ALLOWED) == (number in refused)
            assert (run(alone, machine, number, 1) != ALLOWED) == (number in refused | shared | by_number)
    for numbers in BY_PROCESS.values():
        assert [run(alone, machine, numbers[column], pid) == ALLOWED for pid in (0, 7)] == [True, False]
        assert run(whole, machine, numbers[column], 7) == ALLOWED
    for *of_machines, kind in BY_KIND.values():
        sockets = [(kind, 0), (kind, 7), (kind + 1, 0), (2, 0), (3, 0)]
        assert [run(alone, machine, of_machines[column], *pair) == ALLOWED for pair in sockets] == [True] + [False] * 4
        assert run(whole, machine, of_machines[column], 2, 7) == ALLOWED
    for number, (mode, flags) in modes.items():
        for rights, makes, allowed in [
            (0o755, True, True),
            (0o4755, True, False),
            (0o2755, True, False),
            (0o4755, False, flags >= 0),
        ]:
            words = [0, 0, 0, 0]
            words[mode] = rights
            if flags >= 0:
                words[flags] = 0o101 if makes else 0o1
            assert (run(whole, machine, number, *words) == ALLOWED) == allowed, (number, rights, makes)
    assert run(whole, machine, special["fcntl"], 3, 1024, 0) != ALLOWED  # a lease
    assert run(whole, machine, special["fcntl"], 3, 2, 1) == ALLOWED
    assert run(whole, machine, special["renameat2"], 0, 0, 0, 0, 4) != ALLOWED  # leaves a device in its place
    assert run(whole, machine, special["renameat2"], 0, 0, 0, 0, 2) == ALLOWED
    assert [run(alone, machine, special["socketpair"], 1, kind) == ALLOWED for kind in (1, 0o2000005, 2, 3)] == [
        True,
        True,
        False,
        False,
    ]
    assert run(whole, machine, special["socketpair"], 1, 2) == ALLOWED
    assert run(ports, machine, special["listen"], 3, 1) != ALLOWED
    assert run(whole, machine, special["listen"], 3, 1) == ALLOWED
    assert run(whole, machine, special["clone"], 0x10000011) != ALLOWED
    assert run(whole, machine, special["clone"], 0x11) == ALLOWED
    assert [run(whole, machine, special["ioctl"], 0, key) == ALLOWED for key in (0x5412, 0x541C, 0x5413)] == [
        False,
        False,
        True,
    ]
    families = {
        family: [run(program, machine, special["socket"], family, 1, 0) == ALLOWED for program in (whole, alone, ports)]
        for family in (1, 2, 10, 16, 17, 40)
    }
    assert families == {
        1: [True, False, True],
        2: [True, False, True],
        10: [True, False, True],
        16: [True, True, True],
        17: [False] * 3,
        40: [False] * 3,
    }
    assert run(ports, machine, special["socket"], 2, 2, 0) != ALLOWED  # UDP
    assert run(ports, machine, special["socket"], 2, 1 | 0o4000, 6) == ALLOWED
    assert run(ports, machine, special["socket"], 2, 1, 262) != ALLOWED  # MPTCP
    assert run(ports, machine, special["sendto"], 3, 0, 0, 0x20000000) != ALLOWED
    assert run(ports, machine, special["sendto"], 3, 0, 0, 0x4000) == ALLOWED
    assert run(whole, "i386", 20) == KILLED
    assert run(whole, "x86_64", 0x40000000 | 39) == KILLED
