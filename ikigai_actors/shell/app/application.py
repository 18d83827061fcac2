"""The application: the shell on a whole screen.

    with ActorSystem.open(approvals="ask") as system:
        status = Application(system).run_it()

Threads: the application's own runs Textual, and never waits for the system. Two threads read from the database and lay
out texts; one runs the submitted lines (place.py); one takes snapshots of the registry; the subscription's thread fills
the event buffer. Each thread passes its results on by ``call_soon_threadsafe``. A death of the current agent is seen in
the snapshots, whatever its cause.

The terminal is left clean by every exit that a program can see: signals too end the application in order.
"""

import asyncio
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future as Task
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import click
from textual import events
from textual.app import App
from textual.binding import Binding
from textual.driver import Driver
from textual.screen import Screen
from textual.theme import Theme

from ikigai_actors.actors.futures import Future
from ikigai_actors.errors import BadInput, IkigaiError
from ikigai_actors.reach.snapshots import Snapshot, Snapshots
from ikigai_actors.reach.states import can_be_interrupted, was_cut_off
from ikigai_actors.reach.views import location_of, named_agents, workspace_of
from ikigai_actors.records.spending import Expenses
from ikigai_actors.shell.app.finding import Group, Thing, agent_things, document_things
from ikigai_actors.shell.app.input_history import Recall
from ikigai_actors.shell.app.output import Toast, TranscriptPrinter
from ikigai_actors.shell.app.page_events import PageEvents
from ikigai_actors.shell.app.place import AppPlace, SerialExecutor
from ikigai_actors.shell.app.screens.agents import AgentScreen
from ikigai_actors.shell.app.screens.documents import DocumentScreen
from ikigai_actors.shell.app.screens.find import FindScreen
from ikigai_actors.shell.app.screens.inbox import InboxScreen
from ikigai_actors.shell.app.screens.keys import KeysScreen
from ikigai_actors.shell.app.screens.mail import MailScreen
from ikigai_actors.shell.app.screens.main import MainScreen
from ikigai_actors.shell.app.terminal import HUNG_UP, is_gone, terminal
from ikigai_actors.shell.app.theme import (
    DARK,
    DARK_THEME,
    LIGHT_THEME,
    OWN_THEME,
    THEME_NAMES,
    THEMES,
    ThemeChoice,
    variables,
)
from ikigai_actors.shell.app.typed_key import as_typed
from ikigai_actors.shell.app.widgets.agent_list import AgentList, Doings
from ikigai_actors.shell.app.widgets.rows import Rows
from ikigai_actors.shell.app.widgets.tree_panel import Arranged
from ikigai_actors.shell.line.interrupts import Interrupts
from ikigai_actors.shell.person_command import PersonCommand, TypedCommand, typed_command
from ikigai_actors.shell.slash import commands
from ikigai_actors.system.handles.ref import AgentRef, System
from ikigai_actors.verbs.place import LEAVING_TAKES, last_active, note_visit
from ikigai_actors.verbs.signals import interrupt_turn
from ikigai_actors.verbs.upkeep.prices import trouble_with_prices

if TYPE_CHECKING:
    from ikigai_actors.shell.app.driver import Ground  # not on Windows

T = TypeVar("T")

RATE = 15
"""The most times in a second that news is drawn."""

_NARROW = 72
"""The width of a window, in columns, below which the tree has no room beside the transcript."""

SLOWEST = 0.5
"""The longest time, in seconds, between two checks for news."""

SWITCH = 0.0005
"""Seconds for which a thread that computes keeps the application's waiting. Python's own 5 ms would be felt at the
keyboard: beside two threads that compute the application wakes up after 15 ms with it, and after 2 ms with this.
"""

_CUT_OFF = "The last turn was interrupted; /resume goes on with it."


class Application(App[int]):
    """The full-screen shell. The result of the application is the exit status."""

    TITLE = "ikigai"
    ENABLE_COMMAND_PALETTE = False
    CSS = "ToastRack { dock: top; align: right top; margin-bottom: 0; }"  # never over the prompt and its lines
    BINDINGS: ClassVar[list[Any]] = [Binding("ctrl+p", "find", "Find", show=False, priority=True)]

    def __init__(
        self, system: System, history: Path | None = None, follow: bool = True, provider: str = "",
        notices: Iterable[str] = (), model: str = "", interrupts: Interrupts | None = None,
        config: str | None = None, light: bool | None = None, clock: Callable[[], float] = monotonic,
    ) -> None:  # fmt: skip
        """Prepare the application.

        Args:
            history: the file that keeps submitted texts; None keeps none. Prices are read from ``prices.toml`` in the
                same directory.
            follow: whether the screen goes to the child after a fork.
            provider: the name of the default provider.
            notices: texts to show at the start.
            model: the name of the model of agents without a set model; empty if unknown.
            interrupts: keeps signals that come before the application handles them.
            config: the ``ikigai.toml`` with further prices; None for the usual place.
            light: whether the terminal's background is light; None if unknown.
            clock: returns monotonic seconds; used to decide when a question takes the keyboard.
        """
        super().__init__(ansi_color=True if "NO_COLOR" in os.environ else None)
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (_NARROW, "-wide")]
        for theme in THEMES:
            self.register_theme(theme)
        self._chosen_theme = ThemeChoice(history.with_name("theme") if history is not None else None)
        self._fitting = self.theme = self._first_theme(light)  # before anything is drawn
        self._choose_theme(self._chosen_theme.read())
        self.system, self.follow = system, follow
        self.failure: IkigaiError | None = None
        """Why the application ended by itself."""
        self.undone: list[str] = []
        """The lines that were submitted and not done when the application ended."""
        self._interrupts = interrupts
        self._early: list[events.Event] | None = []  # what is typed before there is a prompt for it
        self._beats = 0
        self._page_title = ""
        self._due = monotonic()
        self._main_loop: asyncio.AbstractEventLoop | None = None
        self._terminal: int | None = None
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="ikigai-screen")
        self._serial = SerialExecutor(self._fail)
        first = last_active(system)
        self._destination = first.uuid  # what is in sight as soon as all that was pressed is done
        spent = Expenses()
        self.events = PageEvents(system, lambda: None, spent.hear)
        """The events of the system."""
        self.questions, self.words = self.events.questions, self.events.words
        self._snapshots = Snapshots(
            system, self.questions, self.words, first.uuid, self._prepare_to_show, self._fail, spent
        )
        self.events.changed = self._snapshots.poke
        for notice in (*notices, *trouble_with_prices(history, config)):
            self.events.notice(notice)
        if first.turn and was_cut_off(system.state_of(first)):
            self.events.notice(_CUT_OFF)
        self._recall = Recall(history)
        self._commands: dict[str, PersonCommand] = {}  # those that run, by the agent on whose page
        self._agents: AgentScreen | None = None  # while it is open
        self._doings = Doings(
            self._press, self._say, self.later, lambda: self._look(self.main.page.agent.uuid, touch=False)
        )
        self.main = MainScreen(
            system.handle(first.uuid), self.events, self._recall, self._threads, self.later, self._do, self._edit,
            self._doings,
            self._look, provider, model, clock,
        )  # fmt: skip
        """The screen that is usually seen."""

    def run_it(self) -> int:
        """Run to the end; return the exit status. Raises the error that ended the system, if one did."""
        before, keyboard = sys.getswitchinterval(), sys.stdin
        sys.setswitchinterval(SWITCH)
        gc.freeze()  # what is there stays: to look through it takes 35 ms, in which no key is heard
        try:
            with Path(os.devnull).open() as nothing:
                sys.stdin = nothing  # the keyboard is Textual's: no command reads it
                result = self.run()
        finally:
            gc.unfreeze()
            sys.setswitchinterval(before)
            sys.stdin = keyboard
        if self.failure is not None:
            raise self.failure
        return result if result is not None else self.return_code or 0

    def get_default_screen(self) -> Screen[Any]:
        """Return the main screen."""
        return self.main

    def on_mount(self) -> None:
        """Start the application's work."""
        self._main_loop = asyncio.get_running_loop()
        self.theme_changed_signal.subscribe(self, self._repaint)
        for name in ("SIGTERM", "SIGHUP", "SIGINT"):
            if (number := getattr(signal, name, None)) is not None:
                self._end_by(number)
        if self._interrupts is not None and (number := self._interrupts.pending):
            self.exit(128 + number)
        self._terminal = terminal()
        self._timer = self.set_timer(1 / RATE, self._beat)
        self._snapshots.start()

    async def on_unmount(self) -> None:
        """End the application: stop its threads, and draw nothing any more."""
        self._timer.stop()
        self.events.close()
        for command in self._commands.values():
            command.stop()
        self.undone = await asyncio.to_thread(self._serial.finish, LEAVING_TAKES)
        self._snapshots.close(1.0)  # a reading in progress gets a moment
        self._threads.shutdown(wait=False, cancel_futures=True)

    def get_driver_class(self) -> type[Driver]:
        """Return the driver of this package at a terminal, else Textual's own."""
        chosen = super().get_driver_class()
        if chosen.__name__ != "LinuxDriver":
            return chosen
        from ikigai_actors.shell.app.driver import TerminalDriver  # not on Windows

        return TerminalDriver

    async def on_event(self, event: events.Event) -> None:
        """Pass an event on. A key or a paste first moves the focus to the widget that the key is for.

        The focus moves first, so no later key overtakes this one. Until the prompt has the focus for the first time,
        keys and pastes are collected.
        """
        event = as_typed(event)
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            if self._early is not None:
                self._early.append(event)
                return
            if self.screen is self.main and self.main.turn_to(event):
                return
            rows = self.focused
            if isinstance(rows, Rows) and isinstance(rows.parent, AgentList) and rows.parent.take_key(event):
                return
        await super().on_event(event)

    def on_ground(self, event: "Ground") -> None:
        """Choose the theme that fits the terminal's background, unless the person has chosen one."""
        before, self._fitting = self._fitting, self._first_theme(event.light)
        if self.theme == before and self._chosen_theme.read() not in THEME_NAMES:
            self.theme = self._fitting

    async def on_descendant_focus(self) -> None:
        """Pass text that was typed early to the prompt, now that the prompt has the focus."""
        early, self._early = self._early, None
        for event in early or ():
            await self.on_event(event)

    # What places use; see `Window`

    @property
    def attended(self) -> bool:
        """Return whether an editor can be shown: a browser has no terminal for it."""
        return not self.is_web

    def visit(self, uuid: str) -> None:
        """Show an agent. Any thread may call."""
        self._destination = uuid
        self._post(self.main.visit, uuid)

    def leave(self) -> None:
        """End the application. Any thread may call."""
        self._post(self.exit, 0)

    def edit(self, text: str) -> str | None:
        """Let an editor use the terminal, and return the edited text. Call it from another thread, which waits."""

        def edit() -> str | None:
            with self.suspend():
                return click.edit(text, extension=".md")

        return self.call_from_thread(edit)

    def tell_when_done(
        self, future: Future[T], done: Callable[[T], None], failed: Callable[[IkigaiError], None]
    ) -> None:
        """Call ``done`` or ``failed`` with the result of a future. Any thread may call."""

        async def wait() -> None:
            try:
                value = await future
            except IkigaiError as error:
                failed(error)
            else:
                done(value)

        self._post(self.run_worker, wait)  # not called when the application has ended

    def stay_with(self, parent: str, child: str) -> None:
        """Go to a child that was just forked, unless the person has gone elsewhere. Any thread may call."""
        if self.main.page.agent.uuid == parent:
            self.main.visit(child)

    def copy(self, text: str) -> None:
        """Copy a text to the clipboard. Any thread may call."""
        self._post(self.copy_to_clipboard, text)

    def choose_theme(self, name: str) -> None:
        """Use this colour theme from now on, also after the next start. Any thread may call."""
        self._chosen_theme.remember(name)
        self._post(self._choose_theme, name)

    def find(self, uuid: str, text: str) -> None:
        """Mark a text in the transcript of an agent, if it is shown now. Any thread may call."""
        self._post(self.main.find, uuid, text)

    def put_back(self, text: str) -> None:
        """Put a withdrawn text back into the prompt. Any thread may call."""
        self._post(self.main.put_back, text)

    def give_up(self, uuid: str, prompt: str, refused: bool) -> None:
        """Note that a prompt will not be answered. Any thread may call."""
        self._post(self.main.give_up, uuid, prompt, refused)

    def later(
        self, work: Callable[[], Any], done: Callable[[Any], None], failed: Callable[[], None] | None = None
    ) -> None:
        """Run ``work`` on another thread, then ``done`` with its result, or ``failed``, on the application's thread."""

        def finished(task: "Task[Any]") -> None:
            if task.cancelled():
                return
            if (error := task.exception()) is None:
                self._post(done, task.result())
            else:
                self.events.notice(f"error: {error}")
                if failed is not None:
                    self._post(failed)

        self._threads.submit(work).add_done_callback(finished)

    # Screens

    def action_keys(self) -> None:
        """Show the list of keys."""
        self.push_screen(KeysScreen(self.main))

    def action_agents(self) -> None:
        """Show all agents, and go to the one that the person chooses."""
        if self._agents is not None:
            return

        def left(uuid: str | None) -> None:
            self._agents = None
            if uuid is not None:
                self.main.visit(uuid)
            self._look(self.main.page.agent.uuid, touch=False)

        self._agents = AgentScreen(self._doings)
        self.push_screen(self._agents, left)
        self._look(self.main.page.agent.uuid, touch=False)

    def action_mail(self) -> None:
        """Show the mail of the current agent."""
        self.push_screen(MailScreen(self.main.page.agent, self.later))

    def action_inbox(self) -> None:
        """Show the questions that wait."""
        self.push_screen(InboxScreen(self.system, self.later))

    def action_documents(self) -> None:
        """Show the screen of documents."""
        self.push_screen(DocumentScreen(self.system, self.later))

    def action_find(self, text: str = "") -> None:
        """Find by a few letters: a screen, an agent, a document, a command, or an earlier prompt."""
        if not isinstance(self.screen, FindScreen):
            screen = FindScreen(text, self._things(), self._read_things, self._agent_things, self.later)
            self.push_screen(screen, self._open)

    def _things(self) -> Iterator[Thing]:
        """Yield the things that can be found without reading the database."""
        for name, (about, _) in self._destinations().items():
            yield Thing(Group.SCREEN, name, about)
        for name, command in sorted(commands.commands.items()):
            yield Thing(Group.COMMAND, name, command.get_short_help_str(100))
        for text in self._recall.search(""):
            yield Thing(Group.PROMPT, text)

    def _read_things(self) -> list[Thing]:
        """Read the things to find that are in the database. Call it on another thread."""
        return [*self._agent_things(""), *document_things(self.system.documents.list())]

    def _agent_things(self, text: str) -> list[Thing]:
        """Return the agents that a text finds, or those that were used last. Call it on another thread."""
        return agent_things(named_agents(self.system, text), self.system.state_of)

    def _destinations(self) -> Mapping[str, tuple[str, Callable[[], object]]]:
        """Return the screens and other actions by name, each with a description and the function that runs it."""
        return {
            "Agents": ("all of them, like htop", self.action_agents),
            "Tree": ("show or hide it", self.main.action_tree),
            "Mail": ("of this agent", self.action_mail),
            "Inbox": ("what waits for a person", self.action_inbox),
            "Documents": ("that all agents share", self.action_documents),
            "Keys": ("and what they do", self.action_keys),
            "Theme": ("change the colours", self.action_change_theme),
            "Quit": ("leave", partial(self.exit, 0)),
            **({"Observer": ("what all agents did and do, in a tab", self._open_observer)} if self.is_web else {}),
        }

    def _open_observer(self) -> None:
        from ikigai_actors.sight.served_pages import link_to  # for pages alone

        def open_link(link: str | None) -> None:
            if link is None:
                self.notify("Nobody observes these agents. Run ikigai observe on this database, and try again.")
            else:
                self.open_url(link)

        self.later(partial(link_to, "observe", location_of(self.system)), open_link)

    def _open(self, thing: Thing | None) -> None:
        if thing is None:
            return
        while self.screen is not self.main:
            self.screen.dismiss(None)
        match thing.group:
            case Group.SCREEN:
                self.call_later(self._destinations()[thing.name][1])  # after what the dismissed screens leave to do
            case Group.AGENT:
                self.main.visit(thing.value)
            case Group.DOCUMENT:
                self.push_screen(DocumentScreen(self.system, self.later, thing.value))
            case Group.COMMAND:
                self._prepare(f"{thing.name} ")
            case Group.PROMPT:
                self._prepare(thing.name)

    # Parts

    def _beat(self) -> None:
        """Draw the news, and set the timer for the next call of this method, later if drawing takes long.

        At most one beat is due at a time. A fixed interval would let beats pile up, and keys would wait for them.
        """
        began = monotonic()
        if self._terminal is not None and is_gone(self._terminal):  # nobody need have sent SIGHUP
            self.exit(HUNG_UP)
            return
        self.main.tick()
        self._beats += 1
        if self._beats % 2 == 0:
            self.main.spin(self._doing_here)
        wait = min(max(1 / RATE, 3 * (monotonic() - began), 2 * (began - self._due)), SLOWEST)
        self._due = monotonic() + wait
        self._timer = self.set_timer(wait, self._beat)

    @property
    def _doing_here(self) -> tuple[str, float] | None:
        """Return the work in progress for the person and its seconds so far: a command or a line; None without any."""
        command = self._commands.get(self.main.page.agent.uuid)
        return self._serial.doing if command is None else (f"! {command.command} (Esc ends it)", command.seconds)

    def _post(self, callback: Callable[..., Any], *arguments: Any) -> None:
        """Call a function soon on the application's thread; do nothing once the application has ended."""
        if self._main_loop is not None and not self._main_loop.is_closed():
            self._main_loop.call_soon_threadsafe(self._call, callback, arguments)

    def _call(self, callback: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        if self.is_running and self.main.is_mounted:
            with self._context():
                callback(*arguments)

    def _prepare_to_show(self, snapshot: Snapshot) -> None:
        """Arrange a snapshot's rows for the visible screen, on the thread of the snapshots, and then show them."""
        if (screen := self._agents) is None:
            self._post(self._show, snapshot, self.main.prepare(snapshot))
            return
        if snapshot.listed:
            self._post(screen.table.update_from, snapshot, screen.table.prepare(snapshot))
        self._post(self._show, snapshot)

    def _show(self, snapshot: Snapshot, tree: Arranged | None = None) -> None:
        self.main.update_from(snapshot, tree)
        self._entitle(f"{'? ' if snapshot.questions else ''}{snapshot.names[snapshot.current.uuid]} · ikigai")

    def _entitle(self, title: str) -> None:
        """Set the title of the browser's page."""
        if not self.is_web or title == self._page_title:
            return
        from textual.drivers.web_driver import WebDriver  # for pages alone

        self._page_title = title
        if isinstance(self._driver, WebDriver):
            self._driver.write_meta({"type": "title", "title": title})

    def _look(self, uuid: str, touch: bool = True) -> None:
        """Note that an agent is shown from now on."""
        self._snapshots.focus(uuid, self._agents.table.wish if self._agents is not None else self.main.wish)
        if touch:
            self._destination = uuid
            self._serial.do(partial(note_visit, self.system.handle(uuid)))

    def _do(self, agent: AgentRef, line: str, queued: bool = False, along: Sequence[str] = ()) -> None:
        printer = TranscriptPrinter(partial(self._post, self.main.tell), agent.uuid, lambda: self.main.columns)
        if (command := typed_command(line)) is not None:
            self._run_command(agent, command, printer)
            return
        place = AppPlace(self, agent, printer, queued, along)
        self._serial.do(partial(place.do, line), line)

    def _run_command(self, agent: AgentRef, typed: TypedCommand, printer: TranscriptPrinter) -> None:
        """Run a person's ``!`` command on a thread, parallel to other work; Escape ends the command."""
        uuid = agent.uuid
        if not self.attended:
            printer.error("A page in a browser runs no commands. Run it in a terminal.")
            return
        if uuid in self._commands:
            printer.error("Your command before still runs; Escape ends it.")
            return

        def run() -> None:
            try:
                printed = command.run()
            except BadInput as error:
                printer.error(str(error))
            else:
                printer.block(printed.shown)
                if typed.goes_along:
                    self._post(self.main.go_along, uuid, printed.for_prompt)
            finally:
                self._post(self._commands.pop, uuid, None)

        try:
            command = PersonCommand(typed.command, workspace_of(self.system) or Path.cwd())
        except BadInput as error:
            printer.error(str(error))
            return
        self._commands[uuid] = command
        threading.Thread(target=run, name="ikigai-person-command", daemon=True).start()

    def _edit(self, text: str) -> None:
        """Let the person edit a text, and put the result into the prompt, even if the editor fails."""

        def edit() -> None:
            edited: str | None = None
            try:
                edited = self.edit(text)
            except click.ClickException as error:
                self._post(partial(self.notify, markup=False), error.format_message())
            finally:
                self._post(self.main.put_back, (edited if edited is not None else text).rstrip("\n"))

        if self.attended:
            self._serial.do(edit)
        else:
            self.main.put_back(text)
            self.notify("A page in a browser has no editor.")

    def _say(self, uuid: str, text: str) -> None:
        """Prompt an agent that may have no page; run a line that begins with a slash."""
        self._recall.remember(text)
        place = AppPlace(self, self.system.handle(uuid), Toast(partial(self._post, partial(self.notify, markup=False))))
        self._serial.do(partial(place.do, text), text)

    def _press(self, line: str) -> None:
        """Run the command of a key, on the agent to which the command of the previous key has led."""
        if line == "interrupt" and (command := self._commands.get(self.main.page.agent.uuid)) is not None:
            command.stop()
            return

        def do() -> None:
            agent = self.system.handle(self._destination)
            if line == "interrupt":
                self._interrupt(agent)
            else:
                AppPlace(self, agent, Toast(partial(self._post, partial(self.notify, markup=False)))).do(line)

        self._serial.do(do)

    def _interrupt(self, agent: AgentRef) -> None:
        """End the turn of an agent and withdraw the texts that wait for it; do nothing if there is neither."""
        state = self.system.state_of(agent.record)
        if can_be_interrupted(state) or self.words.awaits(agent.uuid):
            self._take_back(agent)
            interrupt_turn(agent)

    def _take_back(self, agent: AgentRef) -> None:
        """Withdraw the unread texts that were sent to an agent, and put them back into the prompt."""
        if texts := self.words.take_back(agent.uuid):
            for text in texts:
                self.give_up(agent.uuid, text, refused=False)
            self.put_back("\n".join(texts))

    def _prepare(self, text: str) -> None:
        self.main.page.prompt.become(text)
        self.main.page.prompt.focus()

    def _fail(self, error: IkigaiError) -> None:
        """End the application because the system is closed. Any thread may call."""
        self.failure = error
        self._post(self.exit, 1)

    def _end_by(self, number: int) -> None:
        assert self._main_loop is not None
        try:
            self._main_loop.add_signal_handler(number, self.exit, 128 + number)
        except (NotImplementedError, RuntimeError, ValueError):  # not on Windows, nor beside the main thread
            return

    def _first_theme(self, light: bool | None) -> str:
        if self.no_color:
            return OWN_THEME
        if light is None:
            light = os.environ.get("COLORFGBG", "").rpartition(";")[2] in ("7", "15")
        return LIGHT_THEME if light else DARK_THEME

    def _choose_theme(self, name: str) -> None:
        """Draw in the chosen colours; without a choice, in colours that fit the terminal."""
        if not self.no_color:
            self.theme = THEME_NAMES.get(name, self._fitting)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Return default values of our colour variables, for Textual's own themes."""
        return variables(DARK)

    def _repaint(self, theme: Theme) -> None:
        self.main.paint()
