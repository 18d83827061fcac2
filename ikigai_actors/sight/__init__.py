"""Sight: a page that shows a tree of agents, as it is and as it was at any time; and the turns of agents as traces.

Its modules:

    observer                  serves the page of a system until it is closed
    server                    the requests of the page, as an application of ASGI
    watch                     follows the system while a page is open
    streams                   the stream of events to a page, and their order
    served_pages              the register of the pages that programs of this user serve, for links between them
    page/                     the HTML, CSS and JavaScript of the page
    traces/                   turns as spans of OpenTelemetry
"""

from ikigai_actors.lazy import handed_on

__getattr__, __dir__, __all__ = handed_on(__name__)
