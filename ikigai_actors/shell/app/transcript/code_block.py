"""Markdown in the colours of the theme, no wider than can be read: in a wide window tables and long code are wider.

Keywords are bold, comments are grey, and literals have the accent colour. Code contains no amber, because amber means
that something waits for a person. Red marks removed lines, as in a diff.
"""

from functools import lru_cache
from typing import ClassVar

from markdown_it.token import Token
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult
from rich.markdown import (
    BlockQuote,
    CodeBlock,
    Heading,
    HorizontalRule,
    ListElement,
    Markdown,
    MarkdownElement,
    Paragraph,
)
from rich.segment import Segment
from rich.style import Style
from rich.syntax import Syntax, SyntaxTheme
from rich.theme import Theme

from ikigai_actors.shell.app.theme import DARK, OWN, Palette

TEXT_COLUMNS = 100
"""The most columns of a text: longer lines are hard to read."""

_Kind = tuple[str, ...]
"""A kind of token, as Pygments names it: ``("Literal", "String")``."""


class CodeTheme(SyntaxTheme):
    """The styles of code tokens in one palette."""

    def __init__(self, colours: Palette) -> None:
        ink, past, accent, failed = (
            Style(color=colour) for colour in (colours.ink, colours.past, colours.accent, colours.failed)
        )
        bold, ground = ink + Style(bold=True), Style() if colours is OWN else Style(bgcolor=colours.raised)
        styles = {
            "": ink, "Comment": past + Style(italic=True), "Comment.Preproc": bold, "Keyword": bold,
            "Operator.Word": bold, "Name.Class": bold, "Name.Function": bold, "Name.Tag": bold, "Name.Decorator": past,
            "Literal": accent, "Generic.Heading": bold, "Generic.Subheading": bold, "Generic.Inserted": accent,
            "Generic.Deleted": failed, "Generic.Error": failed, "Generic.Prompt": past, "Error": failed,
        }  # fmt: skip
        self._ground = ground
        self._styles = {tuple(filter(None, kind.split("."))): style + ground for kind, style in styles.items()}

    def get_style_for_token(self, token_type: _Kind) -> Style:
        """Return the style of a token kind, or of its nearest parent kind with a style."""
        if token_type not in self._styles:
            self._styles[token_type] = self.get_style_for_token(token_type[:-1])
        return self._styles[token_type]

    def get_background_style(self) -> Style:
        """Return the style of the background of code."""
        return self._ground


code_theme = lru_cache(8)(CodeTheme)
"""A cached function that returns the theme of a palette."""


@lru_cache(8)
def _markdown_theme(colours: Palette) -> Theme:
    """Return the styles of the parts of markdown: headings are bold, not coloured, and code has its own background."""
    ink, past, accent = colours.ink, colours.past, colours.accent
    code = "bold" if colours is OWN else f"{ink} on {colours.raised}"
    link = f"underline {accent}"
    return Theme({
        **{f"markdown.h{level}": f"bold {ink}" for level in range(2, 7)},
        "markdown.h1": f"bold underline {ink}",
        "markdown.paragraph": ink,
        "markdown.text": ink,
        "markdown.list": ink,
        "markdown.item.bullet": past,
        "markdown.item.number": past,
        "markdown.code": code,
        "markdown.code_block": code,
        "markdown.block_quote": f"italic {past}",
        "markdown.hr": colours.line,
        "markdown.link": link,
        "markdown.link_url": link,
        "markdown.table.border": colours.line,
        "markdown.table.header": f"bold {past}",
    })  # fmt: skip


class _ThemedCode(CodeBlock):
    """A block of code."""

    colours = DARK

    @classmethod
    def create(cls, markdown: Markdown, token: Token) -> "_ThemedCode":
        block = cls((token.info or "").partition(" ")[0] or "text", "")
        block.colours = markdown.colours if isinstance(markdown, ThemedMarkdown) else DARK
        return block

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code, theme = str(self.text).rstrip(), code_theme(self.colours)
        longest = max(map(cell_len, code.split("\n"))) + 2
        width = min(options.max_width, max(TEXT_COLUMNS, longest))
        block = Syntax(code, self.lexer_name, theme=theme, word_wrap=True, padding=1)
        yield from console.render(block, options.update(width=width))


class _LeftHeading(Heading):
    """A heading that is left-aligned at every level."""

    LEVEL_ALIGN: ClassVar[dict[str, JustifyMethod]] = {}


class _Readable(MarkdownElement):
    """A part of markdown whose width is limited to `TEXT_COLUMNS`."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        narrow = options.update(width=min(options.max_width, TEXT_COLUMNS))
        for part in super().__rich_console__(console, narrow):
            yield from (part,) if isinstance(part, Segment) else console.render(part, narrow)


class _Paragraph(_Readable, Paragraph):
    """A paragraph of limited width."""


class _List(_Readable, ListElement):
    """A list of limited width."""


class _Quote(_Readable, BlockQuote):
    """A quotation of limited width."""


class _Line(_Readable, HorizontalRule):
    """A horizontal rule of limited width."""


class ThemedMarkdown(Markdown):
    """Markdown rendered in the colours of a palette."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "paragraph_open": _Paragraph,
        "heading_open": _LeftHeading,
        "bullet_list_open": _List,
        "ordered_list_open": _List,
        "blockquote_open": _Quote,
        "hr": _Line,
        "fence": _ThemedCode,
        "code_block": _ThemedCode,
    }

    def __init__(self, text: str, colours: Palette) -> None:
        super().__init__(text, hyperlinks=False)
        self.colours = colours

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        with console.use_theme(_markdown_theme(self.colours)):
            yield from super().__rich_console__(console, options)
