"""Rules that all HTTP servers of this program share: which requests are accepted, and how many connections.

Its modules:

    guard         decides which clients may use a server, by Host, Origin and a secret
    acceptor      accepts connections, only a few from clients that have not shown the secret
    requests      a request of ASGI
    answers       whole answers, and streams of events
    server        serves an application of ASGI by uvicorn, through the acceptor
    token_file    the token of a server in a file of its user, so that programs know it across restarts
"""
