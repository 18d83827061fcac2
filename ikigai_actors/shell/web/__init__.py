"""The application in a browser: ``ikigai serve``.

    server.py               textual-serve with a guard; runs until a signal ends it
    ../../sight/http/       who may talk to it, and how many at a time
    templates/app_index.html  the page, without anything from elsewhere

Each page is a separate process (``ikigai page``), attached to the system that the server runs. Only this package
imports textual-serve, aiohttp and jinja2, which the extra ``serve`` brings.
"""
