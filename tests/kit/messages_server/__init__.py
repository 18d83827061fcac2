"""A stand-in for the Messages API that speaks real HTTP, and is stricter than the real one.

- `strict`: what is wrong with a request (pure).
- `cache`: the prompt cache: what a request reads of it and writes to it.
- `server`: a server on the loopback whose answers, good and bad, are scripted.
"""
