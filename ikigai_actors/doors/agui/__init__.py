"""AG-UI for web applications: a run is a turn of an agent, as a stream of events.

    runs            the requests
    stream          the events of one agent for one client
    transcript      what a client has, and the events that bring it further (pure)

Written by hand, since the package has types alone; its schema and the official client are the oracles of the tests.
"""
