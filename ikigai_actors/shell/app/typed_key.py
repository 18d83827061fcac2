"""Keys as the characters that a person types.

Textual treats a key as text only if Python calls its character printable. So it would silently drop the wide space of
Japanese, the no-break space, the joiners of Persian and of emoji, and the marks of writing direction.
"""

from unicodedata import category

from textual import events

from ikigai_actors.verbs.text.harmless import harmless


class TypedKey(events.Key):
    """A key event whose character Textual takes as text, although Python does not call the character printable."""

    @property
    def is_printable(self) -> bool:
        """Return True, so that Textual takes the character of the key as text."""
        return True


TypedKey.handler_name = events.Key.handler_name  # else Textual would look for handlers of its own


def as_typed(event: events.Event) -> events.Event:
    """Return the event; a key with a text character that Python does not call printable becomes a `TypedKey`.

    Control characters that could change a terminal are escaped, as in a paste.
    """
    if not isinstance(event, events.Key) or event.character is None or event.is_printable or len(event.character) != 1:
        return event
    return event if category(event.character) == "Cc" else TypedKey(event.key, harmless(event.character))
