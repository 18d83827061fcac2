"""The network API under load: its requests, its start, 10,000 fuzzed requests, and 500 clients that read nothing.

    python -m benchmarks.street [kinds] [start] [fuzz] [slow]

A real host and a real ``ikigai api`` on SQLite, on this machine; clients speak to loopback. The processor's time and
the memory are those of the API's process. Linux alone, which says both.
"""

import hashlib
import hmac
import http.client
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from ikigai_actors.doors.api.operations import operations
from ikigai_actors.errors import IkigaiError
from ikigai_actors.shell.cli.main import run
from ikigai_actors.system.attached import AttachedSystem

REQUESTS = 80
"""Requests of a kind: a principal may ask a hundred times at once."""
FUZZED, FUZZ_SECONDS = 10_000, 170.0
SLOW, STREAMS = 500, 20
"""Clients that read nothing, and how many of them one principal may be."""
HISTORY = 300
"""Messages that each of them is sent."""
SECRET = "only for the other branch"
IKIGAI = [sys.executable, "-m", "ikigai_actors"]


class Api(NamedTuple):
    """A running API."""

    process: "subprocess.Popen[str]"
    database: str
    port: int

    def cpu(self) -> float:
        """The seconds of the processor that its threads have taken, to the nanosecond: a tick is ten requests."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9

    def memory(self) -> float:
        """The megabytes that it holds."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    def token(self, who: str, role: str = "operate", *more: str) -> str:
        """A token of a principal."""
        words = ["--database", self.database, "token", "create", who, "--role", role, "--json", *more]
        with redirect_stdout(StringIO()) as printed:
            run(words)
        return str(json.loads(printed.getvalue())["token"])

    def client(self) -> http.client.HTTPConnection:
        """A connection that is kept."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)


Ask = Callable[[str, str, bytes | None, Mapping[str, str]], tuple[int, bytes]]


def asking(client: http.client.HTTPConnection) -> Ask:
    """Asks on one connection."""

    def ask(method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, bytes]:
        client.request(method, path, body, dict(headers))
        answer = client.getresponse()
        return answer.status, answer.read()

    return ask


@contextmanager
def serving() -> Iterator[Api]:
    """A host and an API on a database of their own."""
    with tempfile.TemporaryDirectory() as folder:
        database = f"{folder}/team.db"
        words = [*IKIGAI, "--database", database, "--provider", "offline"]
        host = subprocess.Popen([*words, "host"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        api = None
        try:
            _fork_two(database)
            api = subprocess.Popen(
                [*words[:-2], "api", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True, bufsize=1
            )
            assert api.stdout is not None
            yield Api(api, database, int(api.stdout.readline().rpartition(":")[2]))
        finally:
            for process in (api, host):
                if process is not None:
                    process.kill()
                    process.wait()


def _fork_two(database: str) -> None:
    """Make an agent that clients reach, and one that they do not, once a host is there."""
    while True:
        with suppress(IkigaiError), AttachedSystem.open(database) as system:
            system.root.fork(name="kid")
            system.root.fork(SECRET, name="other")
            return
        time.sleep(0.2)


def kinds(api: Api) -> None:
    """Print the processor's time of each kind of request, in ms."""
    file = Path(api.database).with_name("secret")
    file.write_text("tea", encoding="utf-8")
    words = [*IKIGAI, "--database", api.database, "endpoint", "add", "shop", "--to", "kid", "--as", "mail"]
    subprocess.run([*words, "--scheme", "hmac", "--secret", f"file:{file}"], capture_output=True, check=True)
    ask = asking(api.client())

    def signed(number: int, secret: bytes = b"tea") -> tuple[str, str, bytes, dict[str, str]]:
        body = json.dumps({"id": number}).encode()
        proof = hmac.new(secret, body, hashlib.sha256).hexdigest()
        return "POST", "/in/shop", body, {"X-Signature": f"sha256={proof}", "X-Delivery": f"d{number}"}

    token = {name: {"Authorization": f"Bearer {api.token(name)}"} for name in "abcdefg"}
    mail = json.dumps({"recipient": "kid", "text": "x" * 280}).encode()
    turn = json.dumps({"text": "tea"}).encode()
    handle = json.loads(ask("POST", "/v1/agents/kid/prompt", turn, token["a"])[1])["turn"]
    requests: dict[str, Callable[[int], tuple[str, str, bytes | None, Mapping[str, str]]]] = {
        "health": lambda n: ("GET", "/healthz", None, {}),
        "a turn": lambda n: ("GET", f"/v1/turns/{handle}", None, token["b"]),
        "mail of 280 characters": lambda n: ("POST", "/v1/send", mail, token["c"]),
        "mail under a key": lambda n: ("POST", "/v1/send", mail, {**token["d"], "Idempotency-Key": f"k{n}"}),
        "the same keys again": lambda n: ("POST", "/v1/send", mail, {**token["d"], "Idempotency-Key": f"k{n}"}),
        "an agent": lambda n: ("GET", "/v1/agents/kid", None, token["e"]),
        "50 messages": lambda n: ("GET", "/v1/agents/kid/messages", None, token["f"]),
        "a signed event": signed,
        "the same events again": signed,
        "a forged event": lambda n: signed(n, b"milk"),
    }
    print("| request | ms |\n| --- | ---: |")
    for name, made in requests.items():
        count = {"a forged event": 9, "health": 1_000}.get(name, REQUESTS // 2 if "key" in name else REQUESTS)
        before = api.cpu()
        answers = Counter(ask(*made(number))[0] for number in range(count))
        print(f"| {name} | {(api.cpu() - before) / count * 1_000:.2f} |  # {dict(answers)}", flush=True)


START = """
import sys
from ikigai_actors.api import AttachedSystem
AttachedSystem.open(sys.argv[1])
print("ready", flush=True)
"""


def start(api: Api) -> None:
    """Print how much longer ``ikigai api`` takes until it serves than an attached system until it is open."""
    serves = [*IKIGAI, "--database", api.database, "api", "--listen", "127.0.0.1:0"]
    least = {"attached": 1e9, "api": 1e9}
    for _ in range(7):
        for name, words in (("attached", [sys.executable, "-c", START, api.database]), ("api", serves)):
            process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
            assert process.stdout is not None
            process.stdout.readline()
            stat = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            least[name] = min(least[name], (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK"))
            process.kill()
            process.wait()
    print(f"start: {least['api']:.2f} s of the processor; an attached system {least['attached']:.2f} s")


def fuzz(api: Api) -> None:
    """Send many requests that make no sense under tokens of a branch; print what they were answered with."""
    chance = random.Random(7)
    paths = [operation.path for operation in operations().values()]
    paths += ["/v1/agents", "/v1/agents/{agent}/messages", "/v1/turns/{agent}/m1", "/v1/files", "/mcp", "/agui/{agent}"]
    words = [
        "kid",
        "other",
        "~",
        "root",
        "",
        "%00",
        "%ff",
        "é",
        "x" * 300,
        "-1",
        "1e9",
        "null",
        "../..",
        "kid/m1",
        SECRET,
    ]
    tokens = [api.token(f"p{number}", "operate", "--under", "kid") for number in range(40)]

    def value(depth: int = 0) -> Any:
        made: list[Any] = [None, True, 0, -1, 2**63, 1.5, *words, "\ud800", "a\0b"]
        if depth < 3 and chance.random() < 0.3:
            return {chance.choice(words): value(depth + 1)} if chance.random() < 0.5 else [value(depth + 1)]
        return chance.choice(made)

    statuses: Counter[int] = Counter()
    until, sent, client = time.monotonic() + FUZZ_SECONDS, 0, api.client()
    while sent < FUZZED and time.monotonic() < until:
        method, path = chance.choice(["GET", "POST", "POST", "PUT", "HEAD"]), chance.choice(paths)
        schema: Mapping[str, Any] = next(
            (operation.schema for operation in operations().values() if operation.path == path), {"properties": {}}
        )
        arguments = {name: value() for name in schema["properties"] if chance.random() < 0.6}
        if chance.random() < 0.2:
            arguments[chance.choice(words)] = value()
        path = path.replace("{agent}", chance.choice(words).encode().decode("latin-1").replace(" ", "%20"))
        if chance.random() < 0.2:
            path += f"?{chance.choice(['after', 'limit', 'wait', 'cursor', 'count'])}={chance.choice(words[3:12])}"
        headers = {"Authorization": f"Bearer {chance.choice(tokens)}", "Content-Type": "application/json"}
        if chance.random() < 0.2:
            headers["Idempotency-Key"] = chance.choice(["k", "x" * 300, "é"])
        body = json.dumps(arguments).encode() if chance.random() < 0.9 else chance.randbytes(30)
        sent += 1
        try:
            client.request(method, path.encode("ascii", "replace").decode(), body, headers)
            answer = client.getresponse()
            text = answer.read()
        except (http.client.HTTPException, OSError):
            client = api.client()
            statuses[0] += 1
            continue
        statuses[answer.status] += 1
        if SECRET.encode() in text and SECRET not in json.dumps(arguments) + unquote(path):
            print(f"another branch is seen by {method} {path} {arguments}")
        if answer.status >= 500 and answer.status != 503:
            print(f"{answer.status} of {method} {path} {arguments}: {text[:300]!r}")
    print(f"{sent:,} fuzzed requests: {dict(sorted(statuses.items()))}")


def slow(api: Api) -> None:
    """Open many streams that nobody reads; print by how much the memory grows."""
    owner = {"Authorization": f"Bearer {api.token('owner')}", "Prefer": "wait=20"}
    ask = asking(api.client())
    for _ in range(HISTORY // 2):
        ask("POST", "/v1/agents/kid/prompt", json.dumps({"text": "x" * 8_000}).encode(), owner)
        time.sleep(0.06)  # twenty a second
    before, clients = api.memory(), list[socket.socket]()
    for number in range(SLOW // STREAMS):
        token = api.token(f"s{number}", "look")
        for _ in range(STREAMS):
            client = socket.socket()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            client.connect(("127.0.0.1", api.port))
            head = f"GET /v1/agents/kid/events?after=0 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n\r\n"
            client.sendall(head.encode())
            clients.append(client)
    time.sleep(10)
    heard = sum(client.recv(12) == b"HTTP/1.1 200" for client in clients)
    print(f"{heard} of {SLOW} slow readers: {api.memory() - before:.0f} MB more than {before:.0f} MB")
    for client in clients:
        with suppress(OSError):
            client.close()


def main(words: list[str]) -> None:
    """Measure."""
    for name, work in {"kinds": kinds, "start": start, "fuzz": fuzz, "slow": slow}.items():
        if not words or name in words:
            with serving() as api:
                work(api)


if __name__ == "__main__":
    main(sys.argv[1:])
