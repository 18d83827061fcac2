"""MCP servers whose tools models call.

Its modules:

    server                      the tools of a server as a toolset, and the restarts of the server
    connection, process, lines  one run of a local server; its process; its messages as lines
    remote, watched             one connection to a remote server; its HTTP, which knows whether a request was taken
    account_connections, oauth  connections for the accounts of callers; the requests and checks of an OAuth client
    remote_address              the URL and the headers of a remote server
    results                     the answers of a server, as results for models
"""
