"""MCP servers whose tools models call.

Its modules:

    server                      how a server is described, and when it is started again
    connection, process, lines  one run of a program, and its messages
    remote, watched             one connection to a remote server, and the HTTP below it
    account_connections, oauth  the connections of accounts; what OAuth asks, and how answers are checked
    remote_address              the URL and the headers of a remote server
    results                     answers, as models read them
"""
