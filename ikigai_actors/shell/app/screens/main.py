"""The main screen: the page of the current agent between the bars, and the tree beside it."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Any, ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import ContentSwitcher, Input, Static

from ikigai_actors.errors import SystemClosed
from ikigai_actors.reach.snapshots import Snapshot, Wish
from ikigai_actors.reach.states import is_in_turn
from ikigai_actors.reach.views import blob_bytes_of, file_text, label_at_hand, now_of
from ikigai_actors.shell.app.agent_page import Later, Page
from ikigai_actors.shell.app.choices import choices_of, command_choices, mentions
from ikigai_actors.shell.app.input_history import Recall
from ikigai_actors.shell.app.page_events import PageEvents
from ikigai_actors.shell.app.screens.pager import PagerScreen
from ikigai_actors.shell.app.theme import Palette, palette
from ikigai_actors.shell.app.transcript.pictures import picture_rows
from ikigai_actors.shell.app.transcript.pieces import Look, tidy
from ikigai_actors.shell.app.transcript.readable import ReadableTranscript
from ikigai_actors.shell.app.widgets import talk_lines
from ikigai_actors.shell.app.widgets.agent_list import Doings
from ikigai_actors.shell.app.widgets.approval_box import QUIET, ApprovalBox, Question
from ikigai_actors.shell.app.widgets.command_menu import CommandMenu, MenuItem
from ikigai_actors.shell.app.widgets.find_bar import FindBar
from ikigai_actors.shell.app.widgets.prompt import PromptBox
from ikigai_actors.shell.app.widgets.rows import Rows
from ikigai_actors.shell.app.widgets.talk_lines import Underway
from ikigai_actors.shell.app.widgets.tree_panel import Arranged, TreePanel
from ikigai_actors.shell.first_picture import BOX_COLUMNS
from ikigai_actors.shell.person_command import typed_command, with_outputs
from ikigai_actors.shell.start import ENDED_BY_CTRL_C
from ikigai_actors.system.handles.ref import AgentRef
from ikigai_actors.verbs.text.call_page import edited_file
from ikigai_actors.verbs.text.harmless import one_line
from ikigai_actors.verbs.text.mentions import is_command
from ikigai_actors.verbs.text.pace import A_TOKEN, Pace
from ikigai_actors.verbs.text.words import activity, took

PAGES = 50
"""The number of kept pages. Above this number, pages that can be made again without loss are closed."""

_SHOWN_WAITING = 5
"""The most waiting prompts that are shown, the latest ones; the line above the prompt counts all."""

_UNTOLD = {"/find", "/editor"}
"""The commands that are not shown in the transcript."""

_TWICE = 2.0
"""The seconds within which a second Ctrl-C ends the application."""

Do = Callable[[AgentRef, str, bool, Sequence[str]], None]
"""Runs a line for an agent, with the output on that agent's page."""


class MainScreen(Screen[None]):
    """The screen that the application begins with, and returns to."""

    DEFAULT_CSS = """
    MainScreen { layout: horizontal; }
    MainScreen.-narrow TreePanel { width: 100%; max-width: 100%; border: none; }
    #talk { layers: base over; width: 1fr; max-width: 160; }
    #transcripts { height: 1fr; padding: 0 1 0 2; }
    #welcome { height: auto; border: round $edge; padding: 0 1; display: none; }
    #work, #foot { height: 1; }
    #box { height: auto; border: round $edge; padding: 0 1; border-subtitle-color: $past; }
    #sign { width: 2; height: 1; color: $past; }
    #sign.here { color: $accent; text-style: bold; }
    #prompts { height: auto; width: 1fr; }
    """

    BINDINGS: ClassVar[list[Any]] = [
        Binding("ctrl+up,alt+up", "press('/parent')", "Parent", priority=True),
        Binding("ctrl+left,alt+left", "press('/prev')", "Previous sibling", priority=True),
        Binding("ctrl+right,alt+right", "press('/next')", "Next sibling", priority=True),
        Binding("ctrl+down,alt+down", "press('/child')", "Newest child", priority=True),
        Binding("escape", "interrupt", "Interrupt the turn"),
        Binding("ctrl+c", "interrupt_or_leave", "Interrupt; twice leaves", priority=True),
        Binding("pageup", "scroll(-1)", "Scroll up", show=False, priority=True),
        Binding("pagedown", "scroll(1)", "Scroll down", show=False, priority=True),
        Binding("ctrl+end", "scroll_to_end", "To the end", priority=True),
        Binding("ctrl+f", "find", "Find in this talk", priority=True),
        Binding("shift+tab", "read", "Read by arrows: Enter opens, Space folds, / finds", priority=True),
        Binding("ctrl+r", "app.find('^')", "Search earlier prompts", priority=True),
        Binding("f2,ctrl+g", "answer", "Answer a question", priority=True),
        Binding("f3,ctrl+t", "tree", "Tree", priority=True),
        Binding("f1", "app.keys", "Keys", show=False, priority=True),
        Binding("f4", "app.agents", "Agents", priority=True),
        Binding("f5", "app.mail", "Mail", priority=True),
        Binding("f6", "app.documents", "Documents", priority=True),
        Binding("ctrl+z", "app.suspend_process", "Suspend", priority=True),
        Binding("f7", "fold('thinking')", "Fold thinking", priority=True),
        Binding("f8,ctrl+o", "fold('results')", "Fold results", priority=True),
    ]

    def __init__(
        self, first: AgentRef, page_events: PageEvents, recall: Recall, workers: Executor, later: Later, do: Do,
        edit: Callable[[str], None],
        doings: Doings,
        looked_at: Callable[[str], None], provider: str, model: str, clock: Callable[[], float] = monotonic,
    ) -> None:  # fmt: skip
        """Make the screen.

        Args:
            first: the agent to show first.
            page_events: the events of the system, kept until a page shows them.
            recall: the texts submitted before.
            workers: threads that lay out long markdown and pictures.
            later: runs work on another thread.
            do: runs a submitted line.
            edit: opens an editor for a text; the result goes to the prompt.
            doings: runs the line of a key, and acts on agents of the tree.
            looked_at: called with the uuid of the agent that is shown now.
            provider: the name of the default provider.
            model: the name of the model of agents without a set model; empty if unknown.
            clock: returns monotonic seconds; used to decide when a question takes the keyboard.
        """
        super().__init__()
        # Held, not looked up: while the application ends, events may arrive after these widgets are removed.
        self._tree, self._question = TreePanel(doings), ApprovalBox(clock)
        self._menu, self._welcome = CommandMenu(command_choices), Static(id="welcome")
        self._find = FindBar(lambda: self.page.transcript)
        self._transcripts, self._prompts = ContentSwitcher(id="transcripts"), ContentSwitcher(id="prompts")
        self._work, self._foot, self._sign = Static(id="work"), Static(id="foot"), Static("›", id="sign")
        self._talk, self._box = Vertical(id="talk"), Horizontal(self._sign, self._prompts, id="box")
        self._system, self._first = first.system, first.uuid
        self._events, self._recall, self._threads = page_events, recall, workers
        self._model = model or provider
        self._edit = edit
        self._later, self._do, self._press, self._looked_at = later, do, doings.press, looked_at
        self._picture = picture_rows(partial(blob_bytes_of, first.system))
        self._pages: dict[str, Page] = {}  # the page that was visited last is at the end
        self._current = first.uuid
        self._lived: set[str] = set()
        self._interrupted_at = float("-inf")
        self._shown: tuple[Text, Text, str] | None = None
        self._line: Text | None = None  # of work
        self._pace, self._spin = Pace(), 0
        self._clock, self._key_at = clock, clock()
        self._texts: dict[int, str | None] = {}  # of files that are to be edited, by question
        self._put_off = self._passed = 0  # the questions that were left for later, and by Tab
        self._doing: tuple[str, float] | None = None
        self.snapshot: Snapshot | None = None
        """The latest snapshot; None until the first one arrives."""

    def compose(self) -> ComposeResult:
        """Lay out the tree at the left, and at the right the transcript above the prompt."""
        self._tree.display = False
        yield self._tree
        with self._talk:
            yield self._transcripts
            yield self._welcome
            yield self._find
            yield self._work
            yield self._question
            yield self._box
            yield self._foot
            yield self._menu

    def on_mount(self) -> None:
        """Go to the first agent."""
        self.visit(self._first)

    @property
    def page(self) -> Page:
        """Return the page that is shown now."""
        return self._pages[self._current]

    @property
    def wish(self) -> Wish | None:
        """Return the selection of agents for the tree; None while the tree is hidden."""
        return self._tree.wish if self._tree.display else None

    # Events of the system

    def visit(self, uuid: str, notice: str = "") -> None:
        """Show the page of an agent, and on it the notice, if given."""
        if not self._transcripts.is_attached:  # the application ends, and mounts nothing any more
            return
        if uuid != self._current:
            self._find.close()
        page = self._pages.pop(uuid, None) or self._open(uuid)
        if page.transcript.parent is None:  # again: the new page was not mounted
            return
        self._pages[uuid], self._current = page, uuid
        self._transcripts.current = page.transcript.id
        self._prompts.current = page.prompt.id
        page.prompt.focus()
        page.read()
        self._drop_pages()
        self.tick()
        if notice:
            page.tell(notice, Look.NOTE)
        self._looked_at(uuid)

    def tick(self) -> None:
        """Show the news of the shown agent, and the notices."""
        if (page := self._pages.get(self._current)) is None:
            return  # not mounted yet
        if (news := self._events.news_of(self._current)) is not None:
            page.show(news)
        for notice in self._events.notices():
            page.tell(tidy(notice), Look.NOTE)
        page.transcript.tick()
        page.prompt.tick()
        self._find.tick()

    def spin(self, doing: tuple[str, float] | None) -> None:
        """Turn the spinners, and show the command in progress: its name and its seconds so far, or None."""
        self._spin, self._doing = self._spin + 1, doing
        self._show_edges()
        self._show_work()
        self._show_running()
        self._attend()

    def _attend(self) -> None:
        """Move the focus to a question of the shown agent if nobody types: the prompt is empty, and no key came lately.

        A question of another agent waits for F2, because the person may be thinking about the next prompt.
        """
        box, prompt = self._question, self.page.prompt
        box.tick()
        rests = self.focused is prompt and not prompt.text and self._clock() - self._key_at >= QUIET
        asks = box.display and box.agent == self._current and box.number != self._put_off
        if rests and asks and self.app.screen is self:
            self.set_focus(box)

    def prepare(self, snapshot: Snapshot) -> Arranged | None:
        """Return the arranged tree of a snapshot; None if the tree is hidden. Slow, so call it on another thread."""
        return self._tree.prepare(snapshot) if self.wish is not None and snapshot.listed else None

    def update_from(self, snapshot: Snapshot, tree: Arranged | None = None) -> None:
        """Show a snapshot; if the current agent has just died, go to the agent that inherits its place."""
        if snapshot.current.uuid != self._current:
            return
        self.snapshot = snapshot
        if snapshot.current.living:
            self._lived.add(self._current)
        elif snapshot.heir is not None and self._current in self._lived:
            self._lived.discard(self._current)
            reason = snapshot.current.exit_reason or "no reason is known"
            self.visit(snapshot.heir.uuid, f"{snapshot.current.short} is dead ({tidy(reason)}); /switch reads it")
            return
        if tree is not None:
            self._tree.update_from(snapshot, tree)
        self.page.prompt.waiting = bool(snapshot.waits)
        self.page.transcript.show_waiting([waiting.text for waiting in snapshot.waiting[-_SHOWN_WAITING:]])
        self._show_bars()

    @property
    def columns(self) -> int:
        """Return the width of a line of the transcript in characters. Any thread may call."""
        return self.page.transcript.scrollable_content_region.width or self.size.width

    def tell(self, uuid: str, text: str, look: Look) -> None:
        """Show a text on the page of an agent, if the agent has a page."""
        if (page := self._pages.get(uuid)) is not None:
            page.tell(tidy(text), look)

    def put_back(self, text: str) -> None:
        """Put a withdrawn text back into the prompt."""
        self.page.prompt.put_back(text)
        self.page.prompt.focus()

    def give_up(self, uuid: str, prompt: str, refused: bool) -> None:
        """End the wait for the answer to a prompt.

        A refused prompt is not in the log, so its text returns to the input, if the input is empty.
        """
        if (page := self._pages.get(uuid)) is not None:
            page.transcript.dismiss(prompt)
            if refused and not page.prompt.text:
                page.prompt.paste(prompt)

    @property
    def colours(self) -> Palette:
        """Return the palette of the theme."""
        return palette(self.app.current_theme)

    def paint(self) -> None:
        """Draw everything in the colours of the theme."""
        for page in self._pages.values():
            page.transcript.paint(self.colours)
        self._show_bars()

    def on_resize(self, event: events.Resize) -> None:
        """Lay out the screen for the new size of the window."""
        self._lay_out()

    # Input of the person

    def turn_to(self, event: events.Event) -> bool:
        """Focus the prompt if an event is for it; return whether the event needs no further handling.

        Events for the prompt are pastes, wherever the focus is, and text typed in the transcript or beside the tree.
        The approval box is asked here and not by its own queue, in which later letters could overtake an earlier one.
        """
        if isinstance(self.focused, Input):  # an entry of the tree
            return False
        self._key_at = self._clock()
        box, prompt = self._question, self.page.prompt
        if before := box.followed_by(event):  # it was no answer, but the beginning of a text
            self._go_to_prompt()
            prompt.insert(before)
            return False
        if self.focused is box and box.takes(event):
            return box.take_key(event)
        taken = self._tree.takes(event) or (isinstance(self.focused, ReadableTranscript) and self.focused.takes(event))
        typed = isinstance(event, events.Key) and event.is_printable and not taken
        if (typed or isinstance(event, events.Paste)) and self.focused is not prompt:
            self._go_to_prompt()
        return False

    def on_prompt_box_submitted(self, event: PromptBox.Submitted) -> None:
        """Run the submitted line."""
        page = self.page
        page.transcript.following = True
        if (command := typed_command(event.text)) is not None:
            page.tell(tidy(f"! {command.command}"), Look.STRONG)
        elif is_command(event.text):
            if event.text.split()[0] not in _UNTOLD:
                page.tell(tidy(event.text), Look.STRONG)
        else:
            page.transcript.wait_with(with_outputs(event.text, event.along))
        self._do(page.agent, event.text, event.queued, event.along)
        self._show_bars()

    def on_text_area_changed(self, event: PromptBox.Changed) -> None:
        """Show completions for the text of the prompt."""
        prompt, agent = event.text_area, self.page.agent
        if prompt is not self.page.prompt:
            return
        text = prompt.text
        self._sign.update("!" if typed_command(text) is not None else "›")
        self._show_bars()
        if self.page.prompt.recalled or "\n" in text or prompt.cursor_location != prompt.document.end:
            self._offer([])
        elif is_command(text) and " " not in text:
            self._offer(command_choices(text))
        elif is_command(text) or mentions(text):
            self._later(lambda: choices_of(agent, text), lambda choices: self._offer(choices, text))
        else:
            self._offer([])

    def on_prompt_box_edits(self) -> None:
        """Take the text of the prompt to an editor."""
        prompt = self.page.prompt
        text = prompt.whole
        prompt.clear()
        self._edit(text)

    def go_along(self, uuid: str, output: str) -> None:
        """Keep an output to be sent with the next prompt of an agent, if the agent has a page."""
        if (page := self._pages.get(uuid)) is not None:
            page.prompt.along.append(output)
            self._show_bars()

    def on_prompt_box_copies(self) -> None:
        """Copy the latest answer."""
        self._press("/copy")

    def on_prompt_box_takes_back(self) -> None:
        """Take back the latest text that waits for the agent."""
        self._press("/queue --take-back")

    def on_prompt_box_left(self, event: PromptBox.Left) -> None:
        """End the application."""
        self.app.exit(event.status)

    def on_transcript_wanted(self, event: ReadableTranscript.Wanted) -> None:
        """Read earlier messages for a transcript."""
        for page in self._pages.values():
            if page.transcript is event.transcript:
                page.read_before(event.position)

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        """Go to the agent that was chosen in the tree."""
        self._go_to_prompt()
        self.visit(event.key)

    def on_agent_list_left(self) -> None:
        """Give the keyboard back to the prompt."""
        self._go_to_prompt()

    def on_approval_box_answered(self, event: ApprovalBox.Answered) -> None:
        """Approve or deny the call of a question, or let the person type a reason."""
        command = event.question.command(event.key)
        if event.key in ("t", "r"):
            self.page.prompt.become(event.question.rule if event.key == "r" else f"{command} ")
            self._put_off = event.question.number
        else:
            self._press(command)
        self.set_focus(self.page.prompt)

    def on_approval_box_above(self) -> None:
        """Withdraw the latest waiting text, as Up does in an empty prompt."""
        if self.page.prompt.waiting:
            self._press("/queue --take-back")

    def on_approval_box_passed(self, event: ApprovalBox.Passed) -> None:
        """Show the question after the one that the person has put off."""
        self._passed = event.question.number
        self._show_bars()

    def on_readable_transcript_opened(self, event: ReadableTranscript.Opened) -> None:
        """Show a piece in full, in the pager."""
        self.app.push_screen(PagerScreen(event.piece, self._threads))

    def on_readable_transcript_finds(self) -> None:
        """Open the search bar."""
        self._find.open()

    def on_find_bar_closed(self) -> None:
        """Give the keyboard back to the prompt."""
        self.set_focus(self.page.prompt)

    def find(self, uuid: str, text: str) -> None:
        """Search the transcript of an agent, if it is shown; for an empty text, let the person type one."""
        if uuid == self._current:
            self._find.open(text)

    def action_find(self) -> None:
        """Search the shown transcript, or filter the tree if it has the focus."""
        if self._tree.has_keyboard:
            self._tree.actions["ctrl+f"]()
        else:
            self._find.open()

    def action_read(self) -> None:
        """Give the keyboard to the transcript, or back to the prompt."""
        if self.focused is self.page.transcript:
            self.set_focus(self.page.prompt)
        else:
            self.page.transcript.begin()

    def action_press(self, line: str) -> None:
        """Run the command of a key."""
        self._press(line)

    def action_interrupt(self) -> None:
        """Interrupt the turn; if the focus is not in the prompt, only move it there."""
        if self._find.display:
            self._find.close()
        elif self.focused is not self.page.prompt:
            self._put_off = self._question.number
            self.set_focus(self.page.prompt)
        else:
            self._press("interrupt")

    def action_interrupt_or_leave(self) -> None:
        """Copy the selected text; without one, interrupt the turn and clear the prompt.

        Pressed again, end the application.
        """
        self.page.prompt.call_later(self._interrupt_or_leave, monotonic())  # after the keys that were typed before

    def _interrupt_or_leave(self, now: float) -> None:
        prompt = self.page.prompt
        if prompt.selected_text:
            prompt.action_copy()
            return
        if now - self._interrupted_at < _TWICE:
            prompt.post_message(PromptBox.Left(ENDED_BY_CTRL_C))
            return
        self._interrupted_at = now
        self._press("interrupt")
        prompt.clear()
        self.notify("Ctrl-C again leaves, and so does Ctrl-D.", timeout=_TWICE)

    def action_scroll(self, by: int) -> None:
        """Scroll by a window, up for -1, down for 1: the question or the tree with the focus, else the transcript."""
        if self.focused is self._question:
            self._question.action_page(by)
            return
        if self._tree.has_keyboard:
            self._tree.rows.action_page(by)
            return
        transcript = self.page.transcript
        transcript.scroll_relative(y=by * max(1, transcript.size.height - 2), animate=False, immediate=True)

    def action_scroll_to_end(self) -> None:
        """Go to the end of the transcript, and stay there."""
        transcript = self.page.transcript
        transcript.following = True
        transcript.scroll_to(y=transcript.max_scroll_y, animate=False, immediate=True)

    def action_answer(self) -> None:
        """Move the focus to the question, or back to the prompt."""
        bar = self._question
        self.set_focus(bar if bar.display and self.focused is not bar else self.page.prompt)

    def action_tree(self) -> None:
        """Show the tree and focus it, or hide it."""
        if self._tree.display:
            self._tree.display = False
            self._lay_out()
            self.set_focus(self.page.prompt)
        else:
            self._tree.open()
            self._lay_out()
        self._looked_at(self._current)

    def action_fold(self, what: str) -> None:
        """Fold or unfold all ``thinking``, or all ``results``."""
        self.page.transcript.fold(thinking=what == "thinking", results=what == "results")

    # Parts

    def _go_to_prompt(self) -> None:
        if not self._talk.display:
            self.action_tree()
        self.set_focus(self.page.prompt)

    def _lay_out(self) -> None:
        """Let the tree cover the transcript in a narrow window, and draw the bars in the transcript's width."""
        self._talk.display = not (self._tree.display and self.has_class("-narrow"))
        self._tree.covers = not self._talk.display
        self.call_after_refresh(self._show_bars)

    def _open(self, uuid: str) -> Page:
        picture = None if self.app.no_color else self._picture
        transcript = ReadableTranscript(self._threads, picture=picture, called=self._called)
        prompt = PromptBox(self._recall, self._menu)
        transcript.id = prompt.id = f"page-{id(transcript)}"  # not the uuid: the page before may not be removed yet
        transcript.paint(self.colours)
        self._transcripts.mount(transcript)
        self._prompts.mount(prompt)
        self._events.follow(uuid)
        return Page(self._system.handle(uuid), transcript, prompt, self._later)

    def _called(self, uuid: str) -> str | None:
        """Return the shown name of an agent, if it is in memory; else None."""
        with suppress(SystemClosed):
            if (label := label_at_hand(self._system, uuid)) is not None:
                return label
        return self.snapshot.names.get(uuid) if self.snapshot is not None else None

    def _drop_pages(self) -> None:
        spare = [uuid for uuid, page in self._pages.items() if uuid != self._current and page.disposable]
        for uuid in spare[: max(0, len(self._pages) - PAGES)]:
            page = self._pages.pop(uuid)
            self._events.forget(uuid)
            page.transcript.remove()
            page.prompt.remove()

    @property
    def _width(self) -> int:
        return min(BOX_COLUMNS, self._talk.size.width or self.size.width)

    def on_descendant_focus(self) -> None:
        """Show by the prompt's sign whether it has the focus, and show the keys of a focused transcript."""
        self._sign.set_class(self.focused is self.page.prompt, "here")
        self._show_bars()

    on_descendant_blur = on_descendant_focus

    def _show_edges(self) -> None:
        """Redraw the borders of the prompt, and the last line, if they have changed."""
        snapshot, width, colours = self.snapshot, self._width, self.colours
        place, facts = talk_lines.way(snapshot, colours), talk_lines.facts(snapshot, self._model, self._arrived)
        busy = snapshot is not None and is_in_turn(snapshot.state)
        reads = isinstance(self.focused, ReadableTranscript) and self.focused.reads
        transcript = self.page.transcript
        below = bool(transcript.answering) and not transcript.following
        foot = talk_lines.reading(width, colours) if reads else talk_lines.foot(snapshot, width, colours, below)
        lower = talk_lines.lower_edge(busy, len(self.page.prompt.along))
        shown = talk_lines.edge(place, facts, width - 6, colours), foot, lower
        if shown != self._shown:  # drawing takes time, and would delay the keyboard
            self._shown = shown
            self._box.border_title = Content.from_rich_text(shown[0])
            self._box.border_subtitle = lower
            self._foot.update(shown[1], layout=False)

    def _show_bars(self) -> None:
        snapshot, width, colours = self.snapshot, self._width, self.colours
        self._show_edges()
        self.page.prompt.placeholder = talk_lines.placeholder(self._called(self._current), width - 6)
        bar, question = self._question, _question(snapshot, self._passed) if snapshot is not None else None
        if question is not None:
            question = self._with_text(question)
        if question is None and self.focused is bar:
            self.set_focus(self.page.prompt)
        bar.ask(question, colours, self._talk.size)
        self._menu.fit(*self._above_box, colours)
        self._greet()
        self._show_work()

    def _with_text(self, question: Question) -> Question:
        """Return the question with the text of the file that its call edits, once the file is read."""
        number, agent, path = question.number, question.call.agent, edited_file(question.call)
        if path is not None and number not in self._texts:
            self._texts[number] = None

            def keep(text: str | None) -> None:
                self._texts[number] = text
                self._show_bars()

            self._later(lambda: file_text(self._system, agent, path), keep)
        return question._replace(text=self._texts.get(number))

    def _greet(self) -> None:
        """Show the welcome text until the first message is written."""
        snapshot, transcript = self.snapshot, self.page.transcript
        is_new = snapshot is not None and snapshot.parent is None and not (snapshot.children or snapshot.works)
        shown = is_new and not (transcript.head or transcript.answering)
        if shown and not self._welcome.display:
            self._welcome.border_title = Content.from_rich_text(Text("ikigai", f"bold {self.colours.ink}"))
            self._welcome.update(talk_lines.welcome(self._width - 4, self.colours))
        self._welcome.display = shown

    def _show_running(self) -> None:
        if (snapshot := self.snapshot) is not None and snapshot.current.uuid == self._current:
            runs = activity(snapshot.state).kind == "tool"
            now = now_of(self._system) if runs else None
            self.page.transcript.show_running(now, snapshot.printed)

    @property
    def _arrived(self) -> int:
        """Return the approximate tokens of the arriving answer; 0 while the agent is not in a turn."""
        works = self.snapshot is not None and self.snapshot.works
        return int(self.page.transcript.arrived / A_TOKEN) if works else 0

    def _show_work(self) -> None:
        line = self._work_line()
        if line != self._line:
            self._line = line
            self._work.update(line, layout=False)

    def _work_line(self) -> Text:
        snapshot, doing, width, colours = self.snapshot, self._doing, self._width, self.colours
        transcript = self.page.transcript
        rate = self._pace.tokens_a_second(transcript.arrived, monotonic())
        if snapshot is None or not snapshot.works:
            if doing is not None and doing[1] >= talk_lines.LONG:
                return talk_lines.command_line(*doing, self._spin, width, colours)
            work = None
        else:
            began = transcript.turn.began
            seconds = max(0.0, (now_of(self._system) - began) / 1000) if began else None
            work = Underway(snapshot.state, seconds, transcript.speaks, rate, self._question.has_focus)
        turn, waiting = transcript.turn, snapshot.waits if snapshot is not None else 0
        after = took(turn.seconds, turn.tokens) if turn.tokens else ""
        return talk_lines.work_line(work, after, waiting, self._spin, width, colours)

    def _offer(self, items: list[MenuItem], text: str | None = None) -> None:
        """Show completions in the menu, if ``text`` is still the prompt's text; None means any text."""
        if text is None or text == self.page.prompt.text:
            self._menu.offer(items, self.page.prompt.text, *self._above_box, self.colours)

    @property
    def _above_box(self) -> tuple[int, int]:
        """Return the width of a line of the menu in columns, and the number of rows below the menu."""
        return self._width - 6, self._box.outer_size.height + self._foot.outer_size.height


def _question(snapshot: Snapshot, passed: int) -> Question | None:
    """Return the question to show: the current agent's first; after a passed question, the next one."""
    questions = sorted(snapshot.questions.items(), key=lambda pair: (pair[1].agent != snapshot.current.uuid, pair[0]))
    if not questions:
        return None
    numbers = [number for number, _ in questions]
    at = (numbers.index(passed) + 1) % len(questions) if passed in numbers else 0
    number, call = questions[at]
    return Question(number, one_line(snapshot.names[call.agent]), call, at + 1, len(questions))
