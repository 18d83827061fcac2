"""Sight: one page on which a tree of agents is seen, as it is and as it was at any time.

with observe(system) as observer:
print(observer.link)

observer                  serves the page of a system until it is closed
server, reading, acting   its requests
watch                     hears the system while a page is open
rows, replies, streams    what pages get, and in which order
http/                     the guard and the acceptor, of `ikigai serve` too
page/                     the page itself
"""

from ikigai_actors.sight.observer import Observer as Observer
from ikigai_actors.sight.observer import observe as observe
