"""Providers, which answer the requests of agents. Import each from its own module; none is loaded before it is used.

- `base`: the protocol and its types, all that a provider needs to know of ikigai.
- `blocks`: what a conversation consists of, in nobody's protocol; `messages_form`: the same for the Messages API.
- `anthropic`: Anthropic's models, and servers that speak as theirs do.
- `openai`: OpenAI's models, and servers that speak chat completions or Responses.
- `pydantic_ai`: whatever Pydantic AI knows.
- `function`: plain Python.
- `scripted`: replies written beforehand, for tests.
- `offline`: no model at all; it says what it remembers, so that everything can be tried without a key.
"""
