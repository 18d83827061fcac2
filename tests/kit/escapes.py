"""Attempts of a program to get out of its fence: ``python escapes.py TARGETS.json [NAME…]`` prints what each has got.

It runs alone, by the standard library. Each attempt has a process of its own and a few seconds. It gets out when it
returns something true; an error, a signal and a time-out are no way out.
"""

import ctypes
import fcntl
import json
import os
import pty
import resource
import select
import signal
import socket
import struct
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long
LIBC.shmat.restype = ctypes.c_void_p

ATTEMPTS: dict[str, Callable[[dict[str, Any]], object]] = {}
"""By their names. Each takes the targets, which are things outside."""

X86 = os.uname().machine == "x86_64"
NUMBERS = {  # on x86_64, elsewhere
    "unshare": (272, 97), "mount": (165, 40), "umount2": (166, 39), "bpf": (321, 280), "perf_event_open": (298, 241),
    "userfaultfd": (323, 282), "add_key": (248, 217), "keyctl": (250, 219), "process_vm_readv": (310, 270),
    "kcmp": (312, 272), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438), "io_uring_setup": (425, 425),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "sethostname": (170, 161), "syslog": (103, 116),
    "clone": (56, 220), "setns": (308, 268), "ptrace": (101, 117), "setpriority": (141, 140), "capget": (125, 90),
    "ioprio_set": (251, 30), "inotify_init1": (294, 26), "inotify_add_watch": (254, 27), "fsopen": (430, 430),
    "fchmodat2": (452, 452),
}  # fmt: skip


def attempt(function: Callable[[dict[str, Any]], object]) -> Callable[[dict[str, Any]], object]:
    ATTEMPTS[function.__name__] = function
    return function


def call(name: str, *arguments: Any) -> int:
    words = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    result = int(LIBC.syscall(ctypes.c_long(NUMBERS[name][0 if X86 else 1]), *words))
    if result < 0:
        raise OSError(ctypes.get_errno(), name)
    return result


def checked(result: int, what: str) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), what)
    return result


# -- files


def open_descriptors() -> list[int]:
    descriptors = []
    for descriptor in range(3, 1024):
        try:
            os.fstat(descriptor)
        except OSError:
            continue
        descriptors.append(descriptor)
    return descriptors


HELD = open_descriptors()
"""What this program was started with, beside its first three."""


@attempt
def reads_a_secret(to: dict[str, Any]) -> object:
    return Path(to["secret"]).read_text()


@attempt
def reads_the_database(to: dict[str, Any]) -> object:
    return Path(to["database"]).read_bytes()


@attempt
def reads_a_key_in_the_home(to: dict[str, Any]) -> object:
    return Path(to["key"]).read_text()


@attempt
def reads_a_secret_by_a_link(to: dict[str, Any]) -> object:
    Path("link").unlink(missing_ok=True)
    Path("link").symlink_to(to["secret"])
    return Path("link").read_text()


@attempt
def reads_a_secret_by_a_hard_link(to: dict[str, Any]) -> object:
    Path("hard").unlink(missing_ok=True)
    os.link(to["secret"], "hard")
    return Path("hard").read_text()


@attempt
def reads_a_secret_by_the_root_of_another_process(to: dict[str, Any]) -> object:
    return Path(f"/proc/{to['victim']}/root{to['secret']}").read_text()


@attempt
def reads_a_secret_by_the_directory_of_another_process(to: dict[str, Any]) -> object:
    return Path(f"/proc/{to['victim']}/cwd/secret").read_text()


@attempt
def opens_a_secret_by_its_handle(to: dict[str, Any]) -> object:
    handle, mount = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128)), ctypes.c_int()
    call("name_to_handle_at", -100, os.fsencode(to["beside"]), handle, ctypes.byref(mount), 0)
    place = os.open(to["beside"], os.O_RDONLY)
    return call("open_by_handle_at", place, handle, os.O_RDONLY) > 0


@attempt
def lists_a_directory(to: dict[str, Any]) -> object:
    return list(Path(to["outside"]).iterdir())


@attempt
def reads_what_others_have_in_tmp(to: dict[str, Any]) -> object:
    return Path(to["in_tmp"]).read_text()


@attempt
def reads_the_passwords(to: dict[str, Any]) -> object:
    return Path("/etc/shadow").read_text()


@attempt
def makes_a_file(to: dict[str, Any]) -> object:
    Path(to["outside"], "made").write_text("mine")
    return True


@attempt
def writes_a_file(to: dict[str, Any]) -> object:
    with Path(to["victim_file"]).open("a") as file:
        file.write("mine")
    return True


@attempt
def cuts_a_file(to: dict[str, Any]) -> object:
    os.truncate(to["victim_file"], 3)
    return True


@attempt
def renames_a_file(to: dict[str, Any]) -> object:
    Path(to["to_rename"]).rename("renamed")
    return True


@attempt
def removes_a_file(to: dict[str, Any]) -> object:
    Path(to["to_remove"]).unlink()
    return True


@attempt
def writes_to_the_system(to: dict[str, Any]) -> object:
    place = Path(to["system_file"])
    place.write_text("mine")
    place.unlink()
    return True


@attempt
def writes_a_setting_of_the_kernel(to: dict[str, Any]) -> object:
    place = Path("/proc/sys/kernel/core_pattern")
    text = place.read_text()
    with place.open("w") as file:
        file.write(text)
    return True


@attempt
def changes_the_rights_of_a_file(to: dict[str, Any]) -> object:
    Path(to["victim_file"]).chmod(0o644)
    return True


@attempt
def changes_the_owner_of_a_file(to: dict[str, Any]) -> object:
    os.chown(to["victim_file"], os.getuid(), os.getgid())
    return True


@attempt
def changes_the_times_of_a_file(to: dict[str, Any]) -> object:
    os.utime(to["victim_file"], (1, 1))
    return True


@attempt
def sets_an_attribute_of_a_file(to: dict[str, Any]) -> object:
    os.setxattr(to["victim_file"], "user.mine", b"1")
    return True


@attempt
def looks_at_a_file(to: dict[str, Any]) -> object:
    return Path(to["secret"]).stat().st_size


@attempt
def watches_a_directory(to: dict[str, Any]) -> object:
    return call("inotify_add_watch", call("inotify_init1", 0), os.fsencode(to["outside"]), 0x100) > 0


@attempt
def plants_a_hook(to: dict[str, Any]) -> object:
    Path(".git/hooks/post-checkout").write_text("#!/bin/sh\n")
    return True


@attempt
def plants_a_hook_by_a_descriptor_of_its_keeper(to: dict[str, Any]) -> object:
    hook = Path(f".git/hooks/planted-{time.monotonic_ns()}")
    for number in range(-1, 1024):
        try:
            (Path(f"/proc/1/fd/{number}") if number >= 0 else hook.parent).joinpath(hook.name).touch()
        except OSError:
            continue
        if hook.exists():
            return True
    return False


@attempt
def plants_a_setting_of_git(to: dict[str, Any]) -> object:
    with Path(".git/config").open("a") as file:
        file.write("[core]\n\tfsmonitor = ./mine\n")
    return True


@attempt
def exchanges_the_repository(to: dict[str, Any]) -> object:
    Path(".git").rename("other")
    Path(".git").mkdir()
    Path(".git").rmdir()
    Path("other").rename(".git")
    return True


@attempt
def plants_a_setting_of_the_editor(to: dict[str, Any]) -> object:
    Path(".vscode").rename("gone")
    Path("gone").rename(".vscode")
    return True


@attempt
def leaves_a_set_user_id_file(to: dict[str, Any]) -> object:
    def is_made(make: Callable[[str], object], name: str) -> bool:
        Path(name).unlink(missing_ok=True)
        try:
            make(name)
        except OSError:
            return False
        finally:
            left = Path(name).stat().st_mode & 0o6000 if Path(name).exists() else 0
            Path(name).unlink(missing_ok=True)
        return left != 0

    def by_descriptor(name: str, mode: int) -> None:
        held = os.open(name, os.O_CREAT | os.O_RDWR, 0o755)
        try:
            os.fchmod(held, mode)
        finally:
            os.close(held)

    def changed(name: str, mode: int) -> None:
        Path(name).touch()
        Path(name).chmod(mode)

    def by_directory(name: str) -> None:
        Path(name).touch()
        os.chmod(name, 0o4755, dir_fd=os.open(".", os.O_RDONLY))

    def by_number(name: str) -> None:
        Path(name).touch()
        call("fchmodat2", -100, os.fsencode(name), 0o4755, 0)

    ways: list[Callable[[str], object]] = [
        lambda name: changed(name, 0o4755),
        lambda name: changed(name, 0o2755),
        lambda name: by_descriptor(name, 0o4755),
        lambda name: os.close(os.open(name, os.O_CREAT | os.O_WRONLY, 0o4755)),
        lambda name: os.mknod(name, 0o104755),
        by_directory,
        by_number,
    ]
    return any(is_made(way, f"set-id-{number}") for number, way in enumerate(ways))


@attempt
def touches_a_device_of_the_machine(to: dict[str, Any]) -> object:
    os.utime("/dev/full")
    return True


@attempt
def holds_up_a_program_of_the_system(to: dict[str, Any]) -> object:
    program = os.open(Path("/usr/bin/env").resolve(), os.O_RDONLY)
    return fcntl.fcntl(program, fcntl.F_SETLEASE, fcntl.F_RDLCK) == 0


@attempt
def mounts_over_a_protected_name(to: dict[str, Any]) -> object:
    checked(LIBC.mount(b"none", b".git/hooks", b"tmpfs", 0, None), "mount")
    return True


@attempt
def mounts_in_a_namespace_of_its_own(to: dict[str, Any]) -> object:
    call("unshare", 0x10020000)
    checked(LIBC.mount(b"none", b"/tmp", b"tmpfs", 0, None), "mount")
    return True


@attempt
def takes_a_mount_away(to: dict[str, Any]) -> object:
    call("umount2", b".git/hooks", 2)
    return True


# -- processes


@attempt
def signals_a_process(to: dict[str, Any]) -> object:
    os.kill(to["victim"], signal.SIGCONT)
    return True


@attempt
def signals_by_a_descriptor(to: dict[str, Any]) -> object:
    signal.pidfd_send_signal(call("pidfd_open", to["victim"], 0), signal.SIGCONT)
    return True


@attempt
def signals_its_guard(to: dict[str, Any]) -> object:
    with Path(f"/proc/{to['victim']}/status").open() as file:  # whoever can see others can find it
        return file.read()


@attempt
def attaches_to_a_process(to: dict[str, Any]) -> object:
    return call("ptrace", 0x4206, to["victim"], 0, 0) == 0


@attempt
def reads_memory(to: dict[str, Any]) -> object:
    held = ctypes.create_string_buffer(8)
    ours = struct.pack("PN", ctypes.addressof(held), 8)
    theirs = struct.pack("PN", to["address"], 8)
    return call("process_vm_readv", to["victim"], ours, 1, theirs, 1, 0) == 8


@attempt
def reads_memory_as_a_file(to: dict[str, Any]) -> object:
    with Path(f"/proc/{to['victim']}/mem").open("rb", 0) as file:
        file.seek(to["address"])
        return file.read(8)


@attempt
def reads_an_environment(to: dict[str, Any]) -> object:
    return Path(f"/proc/{to['victim']}/environ").read_bytes()


@attempt
def reads_a_command_line(to: dict[str, Any]) -> object:
    return Path(f"/proc/{to['victim']}/cmdline").read_bytes()


@attempt
def opens_a_descriptor_of_a_process(to: dict[str, Any]) -> object:
    return Path(f"/proc/{to['victim']}/fd/{to['descriptor']}").read_text()


@attempt
def takes_a_descriptor_of_a_process(to: dict[str, Any]) -> object:
    return call("pidfd_getfd", call("pidfd_open", to["victim"], 0), to["descriptor"], 0) >= 0


@attempt
def limits_a_process(to: dict[str, Any]) -> object:
    return resource.prlimit(to["victim"], resource.RLIMIT_CORE, resource.prlimit(to["victim"], resource.RLIMIT_CORE))


@attempt
def slows_a_process(to: dict[str, Any]) -> object:
    return call("setpriority", 0, to["victim"], 1) == 0


@attempt
def slows_the_disk_of_a_process(to: dict[str, Any]) -> object:
    return call("ioprio_set", 1, to["victim"], 2 << 13 | 5) == 0


@attempt
def moves_a_process(to: dict[str, Any]) -> object:
    os.sched_setaffinity(to["victim"], os.sched_getaffinity(to["victim"]))
    return True


@attempt
def compares_processes(to: dict[str, Any]) -> object:
    return call("kcmp", os.getpid(), to["victim"], 0, 1, to["descriptor"]) >= 0


@attempt
def holds_a_descriptor_of_the_host(to: dict[str, Any]) -> object:
    return HELD


# -- sockets, shared memory, terminals, keys


def echoed(kind: int, address: Any, family: int = socket.AF_UNIX) -> object:
    with socket.socket(family, kind) as client:
        client.settimeout(1)
        client.connect(address)
        client.send(b"hello")
        return client.recv(16)


@attempt
def connects_to_a_socket(to: dict[str, Any]) -> object:
    return echoed(socket.SOCK_STREAM, to["socket"])


@attempt
def sends_a_datagram_by_a_pair(to: dict[str, Any]) -> object:
    pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    return pair[0].sendto(b"out", to["datagrams"])


@attempt
def connects_to_an_abstract_socket(to: dict[str, Any]) -> object:
    return echoed(socket.SOCK_STREAM, "\0" + to["abstract"])


@attempt
def connects_by_tcp(to: dict[str, Any]) -> object:
    return echoed(socket.SOCK_STREAM, ("127.0.0.1", to["tcp"]), socket.AF_INET)


@attempt
def connects_by_multipath_tcp(to: dict[str, Any]) -> object:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262) as client:
        client.connect(("127.0.0.1", to["tcp"]))
    return True


@attempt
def connects_with_its_first_data(to: dict[str, Any]) -> object:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as client:
        client.sendto(b"hello", 0x20000000, ("127.0.0.1", to["tcp"]))
        return client.recv(16)


@attempt
def sends_by_udp(to: dict[str, Any]) -> object:
    return echoed(socket.SOCK_DGRAM, ("127.0.0.1", to["udp"]), socket.AF_INET)


@attempt
def makes_a_packet_socket(to: dict[str, Any]) -> object:
    return socket.socket(17, socket.SOCK_RAW, 0).fileno() >= 0


@attempt
def makes_a_socket_to_the_hypervisor(to: dict[str, Any]) -> object:
    return socket.socket(40, socket.SOCK_STREAM, 0).fileno() >= 0


@attempt
def makes_a_socket_of_the_audit(to: dict[str, Any]) -> object:
    return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 9).fileno() >= 0


@attempt
def reads_a_shared_segment(to: dict[str, Any]) -> object:
    segment = checked(LIBC.shmget(to["segment_key"], 0, 0), "shmget")
    return ctypes.string_at(LIBC.shmat(segment, None, 0o10000), 6) == b"secret"


@attempt
def reads_a_shared_segment_by_its_number(to: dict[str, Any]) -> object:
    return LIBC.shmat(to["segment"], None, 0o10000) not in (None, ctypes.c_void_p(-1).value)


@attempt
def opens_a_queue(to: dict[str, Any]) -> object:
    library = ctypes.CDLL("librt.so.1", use_errno=True)
    return checked(library.mq_open(os.fsencode(to["queue"]), os.O_RDONLY), "mq_open") >= 0


@attempt
def reads_shared_memory(to: dict[str, Any]) -> object:
    return Path(to["shared"]).read_text()


@attempt
def types_at_its_own_terminal(to: dict[str, Any]) -> object:
    os.setsid()
    _, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    fcntl.ioctl(slave, termios.TIOCSTI, b"x")
    return True


@attempt
def writes_to_a_terminal(to: dict[str, Any]) -> object:
    with Path(to["terminal"]).open("w") as file:
        file.write("mine")
    return True


@attempt
def types_at_a_terminal(to: dict[str, Any]) -> object:
    with Path(to["terminal"]).open("w") as file:
        fcntl.ioctl(file, termios.TIOCSTI, b"x")
    return True


@attempt
def stores_a_key(to: dict[str, Any]) -> object:
    return call("add_key", b"user", b"mine", b"x", 1, -3) > 0


@attempt
def reads_the_keys_of_the_session(to: dict[str, Any]) -> object:
    return call("keyctl", 0, -3, 0, 0, 0) > 0


# -- rights


@attempt
def sees_the_keys_of_the_kernel(to: dict[str, Any]) -> object:
    return Path("/proc/keys").read_text()


@attempt
def has_capabilities(to: dict[str, Any]) -> object:
    held = ctypes.create_string_buffer(24)
    call("capget", struct.pack("=Ii", 0x20080522, 0), held)
    return any(struct.unpack("=6I", held.raw))


@attempt
def could_gain_rights_from_a_program(to: dict[str, Any]) -> object:
    return LIBC.prctl(39, 0, 0, 0, 0) == 0


@attempt
def leaves_a_core(to: dict[str, Any]) -> object:
    resource.setrlimit(resource.RLIMIT_CORE, (4096, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    return True


@attempt
def makes_a_user_namespace(to: dict[str, Any]) -> object:
    return call("unshare", 0x10000000) == 0


@attempt
def clones_a_user_namespace(to: dict[str, Any]) -> object:
    pid = call("clone", 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0)
    if not pid:
        os._exit(0)
    return os.waitpid(pid, 0)[1] == 0


@attempt
def enters_a_namespace(to: dict[str, Any]) -> object:
    return call("setns", os.open(f"/proc/{to['victim']}/ns/uts", os.O_RDONLY), 0) == 0


@attempt
def renames_the_machine(to: dict[str, Any]) -> object:
    name = os.uname().nodename.encode()
    return call("sethostname", name, len(name)) == 0


@attempt
def reads_the_log_of_the_kernel(to: dict[str, Any]) -> object:
    return call("syslog", 10, None, 0) > 0


@attempt
def opens_a_file_system(to: dict[str, Any]) -> object:
    return call("fsopen", b"tmpfs", 0) > 0


@attempt
def loads_a_program_into_the_kernel(to: dict[str, Any]) -> object:
    return call("bpf", 0, struct.pack("IIII", 2, 4, 4, 1) + bytes(64), 72) > 0


@attempt
def counts_events_of_the_processor(to: dict[str, Any]) -> object:
    attributes = struct.pack("IIQQQQ", 1, 112, 0, 0, 0, 0) + bytes(72)
    return call("perf_event_open", attributes[:112], 0, -1, -1, 0) > 0


@attempt
def handles_its_page_faults(to: dict[str, Any]) -> object:
    return call("userfaultfd", 1) > 0


@attempt
def asks_the_kernel_by_a_ring(to: dict[str, Any]) -> object:
    return call("io_uring_setup", 4, ctypes.create_string_buffer(120)) > 0


@attempt
def calls_as_a_32_bit_program(to: dict[str, Any]) -> object:
    import mmap

    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")  # mov eax, 20 (getpid); int 0x80; ret
    run = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
    return run() > 0


def tried(name: str, targets: dict[str, Any], seconds: float = 3.0) -> bool:
    """Whether an attempt gets out."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(reading)
        os.dup2(os.open("/dev/null", os.O_RDWR), 2)
        try:
            if ATTEMPTS[name](targets):
                os.write(writing, b"out")
        finally:
            os._exit(0)
    os.close(writing)
    said = os.read(reading, 3) if select.select([reading], [], [], seconds)[0] else b""
    os.close(reading)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return said == b"out"


def main() -> None:
    targets = json.loads(Path(sys.argv[1]).read_text())
    names = sys.argv[2:] or list(ATTEMPTS)
    print(json.dumps({"out": [name for name in names if tried(name, targets)], "tried": len(names)}))


if __name__ == "__main__":
    main()
