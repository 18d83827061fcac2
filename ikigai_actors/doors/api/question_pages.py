"""The pages of signed links: plain HTML without scripts, which any browser of a mail program shows. Pure.

    question_page(question)     the question, the exact call, and the form
    notice_page("…")            the news of it

Text of models, tools and people is escaped.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from html import escape
from typing import Any
from urllib.parse import urlsplit

from ikigai_actors.reach.question_links import ALLOWS, ANSWERS, CONNECTS, DENIES, FIELD, LinkedForm
from ikigai_actors.reach.shown_questions import ShownQuestion

_STYLE = (
    "body{font:1rem/1.5 system-ui,sans-serif;max-width:40rem;margin:2rem auto;padding:0 1rem;color:#1f2328;"
    "background:#fff}pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#f2f4f6;padding:.8rem;border-radius:"
    "6px}label{display:block;margin:.8rem 0 .2rem;font-weight:600}input,select,textarea{font:inherit;width:100%;"
    "box-sizing:border-box;padding:.4rem}button{font:inherit;margin:1rem .6rem 0 0;padding:.5rem 1.2rem}"
    ".quiet{color:#57606a;font-size:.875rem}.wrong{color:#b42318}"
    "@media(prefers-color-scheme:dark){body{background:#16191d;color:#e6edf3}pre{background:#22272e}"
    ".quiet{color:#9aa4af}.wrong{color:#ff9a8f}}"
)

PAGE_HEADERS = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; form-action 'self'; base-uri 'none'; "
    f"style-src 'sha256-{base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}'",
}
"""The headers of a page, in addition to those of every answer."""

MEDIA_HTML = "text/html; charset=utf-8"

LARGEST_FORM = 256 * 1024
"""The most bytes of a submitted form."""


def question_page(question: LinkedForm, wrong: str = "") -> bytes:
    """Return the HTML page that asks a question. Only its form changes something, when it is sent.

    ``wrong``: why the form was refused.
    """
    shown, waiting = question.shown, question.shown.waiting
    refused = f'<p class="wrong" role="alert">{escape(wrong)}</p>' if wrong else ""
    arguments = f"<pre>{escape(shown.arguments)}</pre>" if shown.is_call else ""
    changed = f"<p>{escape(waiting.call.change)}</p>" if waiting.call.change else ""
    fields = _decision(shown) if shown.form is None else _fields(shown.form)
    connect = waiting.call.connect
    title = f"<h1>{escape(shown.title)}</h1>" if connect is None else _account_asked(shown, connect)
    body = (
        f"{title}{arguments}{changed}{refused}<form method='post'>"
        f"<input type='hidden' name='digest' value='{escape(waiting.digest)}'>{fields}</form>"
        f'<p class="quiet">Agent {escape(shown.who)} asks. The first answer holds. This link holds until '
        f"{escape(question.expires)}, for this question alone.<br>"
        f"Digest of what is shown: {waiting.digest[:16]}</p>"
    )
    return _page("A question of an agent", body)


def notice_page(text: str) -> bytes:
    """Return an HTML page with a notice and no form."""
    return _page("A question of an agent", f"<h1>{escape(text)}</h1>")


def _page(title: str, body: str) -> bytes:
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    head += '<meta name="robots" content="noindex">'
    return f'<!doctype html><html lang="en">{head}<title>{title}</title><style>{_STYLE}</style>{body}</html>'.encode()


def leave_page(url: str, server: str) -> bytes:
    """Return the HTML page with the link by which a person goes to an authorization server."""
    host = escape(urlsplit(url).netloc)
    body = (
        f"<h1>Go on to {host}</h1><p>It asks you for an account at {escape(server)}. Look at its address before you "
        f"give a password.</p><p><a rel='noreferrer' href='{escape(url)}'>Go on to {host}</a></p>"
        '<p class="quiet">This holds for ten minutes, in this browser.</p>'
    )
    return _page("Connect an account", body)


def _account_asked(shown: ShownQuestion, connect: Mapping[str, Any]) -> str:
    """Return the text that asks for an account, with the agent, the server and the label."""
    server, subject = escape(str(connect["server"])), escape(str(connect["subject"]))
    return (
        f"<h1>Connect your account at {server}?</h1><p>Agent {escape(shown.who)} wants to call "
        f"{escape(shown.waiting.call.tool)} with the account of <strong>{subject}</strong>. All agents of {subject} "
        "will use this account. Go on only if that is you.</p>"
    )


def _decision(shown: ShownQuestion) -> str:
    if shown.waiting.call.connect is not None:
        return _reason("do not connect it") + _buttons(CONNECTS, "Connect my account", "Do not connect")
    return _reason("deny it") + _buttons(ALLOWS, "Allow", "Deny")


def _fields(form: Mapping[str, Any]) -> str:
    if form["type"] == "object":
        needed = form.get("required", [])
        fields = "".join(_field(name, part, name in needed) for name, part in form["properties"].items())
    else:
        fields = _field("", form, needed=True)
    return fields + _reason("decline") + _buttons(ANSWERS, "Answer", "Decline")


def _reason(what: str) -> str:
    return f"<label for='reason'>Why, if you {what}</label><input id='reason' name='reason' maxlength='2000'>"


def _buttons(yes: str, label: str, no_label: str) -> str:
    no = f"<button name='decide' value='{DENIES}' formnovalidate>{no_label}</button>"
    return f"<button name='decide' value='{yes}'>{label}</button>{no}"


def _field(name: str, field: Mapping[str, Any], needed: bool) -> str:
    """Return the HTML of a form's field. A field without a name is the whole answer."""
    sent, label = escape(FIELD + name), escape(str(field.get("title") or name or "Your answer"))
    more = f' <span class="quiet">{escape(str(field["description"]))}</span>' if field.get("description") else ""
    required = " required" if needed else ""
    kind = field["type"]
    chosen = ["yes", "no"] if kind == "boolean" and not field.get("enum") else field.get("enum")
    if chosen is not None:
        options = "".join(f"<option>{escape(_as_text(choice))}</option>" for choice in chosen)
        asked = f"<select id='{sent}' name='{sent}'{required}><option></option>{options}</select>"
    elif kind == "string":
        asked = f"<textarea id='{sent}' name='{sent}' rows='3'{required}></textarea>"
    else:
        step = "1" if kind == "integer" else "any"
        asked = f"<input id='{sent}' name='{sent}' type='number' step='{step}'{required}>"
    return f"<label for='{sent}'>{label}{more}</label>{asked}"


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
