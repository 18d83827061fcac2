"""Files that a search hides, because a rule denies them or asks about each.

    rules: deny read secrets/**        grep . · glob **      show nothing of what is in secrets, and say so

A rule that denies reading a path would be useless if a search of a parent directory showed the contents.
`ikigai_actors.tools.rules.rule.withholding` decides which rules count here; this module resolves paths in the file
system.
"""

from ikigai_actors.tools.policy import Asked, Compared
from ikigai_actors.tools.rules.acting import acting_rules
from ikigai_actors.tools.rules.rule import withholding
from ikigai_actors.tools.workspace.beneath import Root

KEPT_BACK = "[left out: files that a rule denies or asks about one by one]"


class Withheld:
    """The files that one search by the acting agent hides. It reads the file system, so it may block."""

    def __init__(self, root: Root, tool: str, path: str, *, contents: bool) -> None:
        """Prepare for a search of a path by a tool; ``contents`` as for `withholding`."""
        self._root, self._tool, self._known = root, tool, dict[str, bool]()
        rules = acting_rules.get()
        self._rules = withholding(rules, tool, self._asked(path), contents) if rules else ()
        self.any = False
        """Whether something was left out."""

    def __bool__(self) -> bool:
        return bool(self._rules)

    def __contains__(self, path: str) -> bool:
        if not self._rules:
            return False
        if (is_withheld := self._known.get(path)) is None:
            asked = self._asked(path)
            is_withheld = self._known[path] = any(rule.fits(rule.tool, asked) for rule in self._rules)
        self.any = self.any or is_withheld
        return is_withheld

    def shown(self, result: str) -> str:
        """Return the visible part of a search's result, and a note if files are hidden."""
        return f"{result.rstrip()}\n{KEPT_BACK}" if self.any else result

    def _asked(self, path: str) -> Asked:
        return Asked(Compared.PATH, self._root.without_links(path))
