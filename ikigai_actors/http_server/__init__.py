"""Rules that all HTTP servers of this program share: which requests come in, and how many connections.

Its modules:

    guard         Host, Origin and a secret
    acceptor      connections, few at a time from strangers
    requests      a request of ASGI
    answers       whole answers, and streams of events
    server        an application with both before it, until it ends
    token_file    a secret that programs know across restarts of a server
"""
