"""A stand-in for servers that speak OpenAI's protocols, over real HTTP.

- `strict`: what is wrong with a request (pure), for chat completions and for Responses.
- `server`: a server on the loopback whose answers, good, odd and bad, are scripted.
"""
