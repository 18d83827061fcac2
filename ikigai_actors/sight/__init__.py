"""Sight: one page on which a tree of agents is seen, as it is and as it was at any time; and its turns as traces.

Its modules:

    observer                  serves the page of a system until it is closed
    server                    its requests
    watch                     hears the system while a page is open
    streams                   what pages get, and in which order
    served_pages              how one page finds another of the same database
    page/                     the page itself
    traces/                   turns as spans of OpenTelemetry
"""

from ikigai_actors.lazy import handed_on

__getattr__, __dir__, __all__ = handed_on(__name__)
