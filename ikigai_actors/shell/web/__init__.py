"""The application in a browser: ``ikigai serve``.

    server.py               textual-serve with a guard; runs until a signal ends it
    ../../http_server/      the guard of all HTTP servers, and limits on their connections
    templates/app_index.html  the page, which loads nothing from other servers

Each page is a separate process (``ikigai page``), attached to the system that the server runs. Only this package
imports textual-serve, aiohttp and jinja2, which the extra ``serve`` brings.
"""
