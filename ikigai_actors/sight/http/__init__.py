"""The guard of the servers on loopback: of the terminal in a browser (`ikigai serve`), and of the observer.

guard.py       which requests come in: Host, Origin and a secret
acceptor.py    how many connections at a time, few from strangers
"""
