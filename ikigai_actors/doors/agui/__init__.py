"""AG-UI for web applications: a run is a turn of an agent, as a stream of events.

    runs            the requests of clients: a run is a turn, sent as events
    stream          the events of one agent for one client
    transcript      the messages that a client has, and the events that it needs next (pure)

Requests and events are those of ``ag-ui-protocol``, which the extra ``agui`` brings. The package has no server, so the
code here decides the events for each client and their order. The tests compare with the official client.
"""
