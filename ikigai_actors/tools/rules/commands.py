"""Parses commands of bash as bash does, as far as that is possible without a shell. Pure.

A command is *plain* when bash runs exactly one simple command with exactly the words that are written there: no
expansion, redirection, grouping, chain or assignment. Only a plain command can be allowed by a pattern, so
`plain_words` errs towards None. A test compares this with bash itself. A pattern checks only the words. So a command
that it allows runs apart from the agent's shell (see `ikigai_actors.tools.workspace.apart`), and a command that changes
that shell (`of_shell`) cannot be allowed by a pattern.

`may_run` errs the other way: it looks for commands that any part of the text could run. It helps models that mean well.
A program can call any other program, so a rule that denies is no protection against malice.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

CommandWord = str | None
"""A word. In a pattern, None matches any word; in a command, it is a word whose value only bash can know."""

_BLANK = " \t"
_PIECE = re.compile(r"""[A-Za-z0-9_@%+=:,./-]|'[^']*'|"[^"$`\\!]*\"""")
_WILDCARD = re.compile(r"\*(?=[ \t]|\Z)")

_KEYWORDS = frozenset({
    "if", "then", "else", "elif", "fi", "case", "esac", "for", "select", "while", "until", "do", "done", "in",
    "function", "time", "coproc",
})  # fmt: skip

_WRAPPERS = frozenset({
    "bash", "sh", "dash", "zsh", "ksh", "env", "sudo", "doas", "su", "nice", "ionice", "nohup", "timeout", "time",
    "xargs", "command", "builtin", "exec", "eval", "watch", "strace", "setsid", "stdbuf", "chroot", "unshare",
    "nsenter", "parallel", "busybox", "script", "flock", "coproc", "find", "ssh", "trap", "taskset", "chrt", "prlimit",
    "setarch", "ltrace", "systemd-run", "runuser", "pkexec", "unbuffer", "setpriv", "numactl", "uv", "npx",
})  # fmt: skip
"""Commands that run a command which their arguments name."""

_BY_INPUT = frozenset({"xargs", "parallel"})
"""The commands among them that take further words from their input."""

SOME = "\0"
"""In the words of a command: any number of words that only bash can know. No word of bash contains this character."""

_GIT_VALUES = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--exec-path"})
"""Options of git before its subcommand, each followed by a value."""

_OF_SHELL = frozenset({
    ".", "alias", "bg", "bind", "cd", "complete", "compopt", "declare", "dirs", "disown", "enable", "eval", "exec",
    "exit", "export", "fc", "fg", "getopts", "hash", "history", "jobs", "let", "local", "logout", "mapfile", "popd",
    "pushd", "read", "readarray", "readonly", "return", "set", "shift", "shopt", "source", "suspend", "trap", "typeset",
    "ulimit", "umask", "unalias", "unset", "wait",
})  # fmt: skip
"""Commands of bash that change the shell in which they run, or show what it alone has."""

_BEFORE = _KEYWORDS | {"!", "{"}
"""Words that may come before a command."""

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_SEPARATORS = ";&|()`\n"
_INNER = re.compile(r"\$\(|[`)]")
_PARAMETER = re.compile(r"\$(?:\w+|\{[^}]*\}|[@*#?$!-])?")
_DEEP = 8
"""The most levels of commands within commands that are read."""


def plain_words(text: str) -> tuple[str, ...] | None:
    """Return the words of one simple command of bash; None for any other text.

    A simple command has a program and its arguments: no pipe, list, substitution, redirection or assignment.
    """
    words = tuple(word for word in _read(text, False) or () if word is not None)
    if not words or not all(word.isprintable() for word in words):
        return None
    first = words[0]
    if not first or "=" in first or first.startswith("%") or first in _KEYWORDS:
        return None  # an assignment, a job, or the beginning of something else
    return words


def of_shell(words: Sequence[CommandWord]) -> bool:
    """Return whether a command changes the shell in which it runs, or prints that shell's state."""
    return next((word in _OF_SHELL for word in words if word not in ("builtin", "command", "--", "-p")), False)


def runs_another(words: Sequence[CommandWord]) -> bool:
    """Return whether a command runs another one, which its arguments name."""
    return bool(words) and _base(words[0]) in _WRAPPERS


def pattern_words(text: str) -> tuple[CommandWord, ...] | None:
    """Return the words of a pattern, which is written like a plain command with ``*`` as a word.

    None if it is no pattern.
    """
    words = _read(text, True)
    return None if not words or not all(word is None or word.isprintable() for word in words) else tuple(words)


def fits(pattern: Sequence[CommandWord], words: Sequence[CommandWord]) -> bool:
    """Return whether a pattern matches the words of a command.

    A ``*`` at its end matches any further words, or none.
    """
    further = bool(pattern) and pattern[-1] is None
    begin = pattern[:-1] if further else pattern
    return _fits_all(begin, words, further)


def _fits_all(begin: Sequence[CommandWord], words: Sequence[CommandWord], further: bool) -> bool:
    """Return whether words begin with ``begin``, and end there unless ``further`` words are allowed."""
    for at, wanted in enumerate(begin):
        if at == len(words):
            return False
        word = words[at]
        if word == SOME:
            rest = words[at + 1 :]
            return any(_fits_all(begin[skipped:], rest, further) for skipped in range(at, len(begin) + 1))
        if wanted is not None and word is not None and wanted != word:
            return False
    return further or all(word == SOME for word in words[len(begin) :])


def may_run(pattern: Sequence[CommandWord], text: str) -> bool:
    """Return whether any part of a text may run a command that matches a pattern, even through another command."""
    try:
        return any(_begins(pattern, words) for words in _commands(text, 0))
    except _UnreadableError:
        return pattern[0] is None or any(
            _base(word) == pattern[0] for word in re.findall(r"[^\s'\"\\;&|(){}`$<>]+", text)
        )


class _UnreadableError(Exception):
    """A quotation does not end, or commands are nested too deep."""


def _read(text: str, wildcards: bool) -> list[CommandWord] | None:
    """Return the words of a text with only characters that bash takes literally; None for any other text."""
    words: list[CommandWord] = []
    place = 0
    while place < len(text):
        if text[place] in _BLANK:
            place += 1
            continue
        if wildcards and _WILDCARD.match(text, place):
            words.append(None)
            place += 1
            continue
        word = ""
        while place < len(text) and text[place] not in _BLANK:
            if (piece := _PIECE.match(text, place)) is None:
                return None
            word += piece[0][1:-1] if piece[0][0] in "'\"" else piece[0]
            place = piece.end()
        words.append(word)
    return words


def _begins(pattern: Sequence[CommandWord], words: Sequence[CommandWord]) -> bool:
    wrapped = bool(words) and _base(words[0]) in _WRAPPERS
    starts = range(len(words)) if wrapped else range(min(1, len(words)))
    if words and _base(words[0]) in _BY_INPUT:
        words = [*words, SOME]
    return any(fits(pattern, form) for at in starts for form in _forms(words[at:]))


def _forms(words: Sequence[CommandWord]) -> Iterator[Sequence[CommandWord]]:
    """Yield a command in the forms that a pattern may match.

    These are the words as written, with the program's bare name, and for git without the options before its verb.
    """
    yield words
    named = [_base(words[0]), *words[1:]]
    yield named
    if named[0] != "git":
        return
    at = 1
    while at < len(named) and (option := named[at]) is not None and option.startswith("-"):
        at += 2 if option in _GIT_VALUES else 1
    yield ["git", *named[at:]]


def _base(word: CommandWord) -> CommandWord:
    return word if word is None else word.rpartition("/")[2]


def _commands(text: str, depth: int) -> Iterator[list[CommandWord]]:
    """Yield the words of each command that a text may run, without keywords and assignments before it."""
    if depth > _DEEP:
        raise _UnreadableError
    reader = _Reader(text)
    reader.read()
    for command in reader.commands:
        words = command[_start(command) :]
        yield words
        if words and _base(words[0]) in _WRAPPERS:
            for word in words[1:]:
                if word is not None and any(mark in word for mark in f"{_BLANK}{_SEPARATORS}"):
                    yield from _commands(word, depth + 1)
    for inner in reader.inner:
        yield from _commands(inner, depth + 1)


def _start(command: Sequence[CommandWord]) -> int:
    """Return the index at which the command begins, after keywords with their arguments, and assignments."""
    at = 0
    while at < len(command) and _comes_before(word := command[at]):
        at += 1
        if word == "time":
            while command[at : at + 1] in (["-p"], ["--"]):
                at += 1
        elif word == "function" or (word == "coproc" and command[at + 1 : at + 2] == ["{"]):
            at += 1  # its name
    return at


def _comes_before(word: CommandWord) -> bool:
    return word is not None and (word in _BEFORE or _ASSIGNMENT.match(word) is not None)


@dataclass(slots=True)
class _Reader:
    """Splits a text into the commands that bash could run in it."""

    text: str
    commands: list[list[CommandWord]] = field(default_factory=lambda: [[]])
    inner: list[str] = field(default_factory=list)
    """Texts within double quotes that bash runs."""
    _word: str | None = None
    _known: bool = True
    """Whether the word is all that is read of it."""
    _splits: bool = False
    """Whether bash may make several words of it, or none."""
    _target: bool = False
    """Whether the next word is a file to which something is redirected."""

    def read(self) -> None:
        """Read all of the text. Raises `_UnreadableError`."""
        place = 0
        while place < len(self.text):
            place = self._step(place)
        self._end_word()

    def _step(self, at: int) -> int:
        """Read the element at an index; return the index of the next one."""
        mark = self.text[at]
        if mark in _BLANK:
            self._end_word()
        elif mark in "<>":
            if self._word is not None and self._word.isdecimal():
                self._word = None  # the number of a descriptor
            self._end_word()
            if self.text.startswith("<<<", at):
                return at + 3  # a text that the command reads, and a shell runs
            self._target = True
            return at + 2 if self.text[at + 1 : at + 2] == "&" else at + 1
        elif mark in _SEPARATORS or self.text.startswith("$(", at):
            self._end_word()
            self._target = False
            if mark in "$`" and self.commands[-1]:
                self.commands[-1].append(SOME)  # what the inner command prints
            self.commands.append([])
            return at + 2 if mark == "$" else at + 1
        elif mark in "'\"":
            return self._quotation(at, mark)
        elif mark == "\\":
            if (next_one := self.text[at + 1 : at + 2]) != "\n":  # else the line goes on
                self._add(next_one)
            return at + 2
        elif mark == "$" and (match := _PARAMETER.match(self.text, at)):
            self.inner += _INNER.split(match[0])[1:]
            self._add("", known=False)
            self._splits = True
            return match.end()
        else:
            self._splits = self._splits or (mark == "{" and bool(self._word or self.text[at + 1 : at + 2].strip()))
            self._add(mark, known=mark not in "*?[~")
        return at + 1

    def _quotation(self, at: int, mark: str) -> int:
        end = at + 1
        while end < len(self.text) and self.text[end] != mark:
            end += 2 if mark == '"' and self.text[end] == "\\" else 1
        if end >= len(self.text):
            raise _UnreadableError
        quoted = self.text[at + 1 : end]
        expands = mark == '"' and any(char in quoted for char in "$`\\")
        self._add(quoted, known=not expands)
        if expands:
            self.inner += _INNER.split(quoted)[1:]
        return end + 1

    def _add(self, text: str, known: bool = True) -> None:
        self._word = (self._word or "") + text
        self._known = self._known and known

    def _end_word(self) -> None:
        if self._word is not None:
            if not self._target:
                self.commands[-1].append(self._read_word(self._word))
            self._target = False
        self._word, self._known, self._splits = None, True, False

    def _read_word(self, word: str) -> CommandWord:
        """Return a word after reading it: `SOME` if bash may split it, None if only bash knows its value."""
        if _ASSIGNMENT.match(word) is not None:
            return word
        if self._splits and (word or self.commands[-1]):
            return SOME
        return word if self._known else None
