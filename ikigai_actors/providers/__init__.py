"""Providers: the code that sends the requests of agents to models.

The package exports the providers that programs need. A provider is imported when it is first used.

    base                        the protocol and its types, all that a provider needs to know of ikigai
    blocks, conversation        what a conversation consists of, in nobody's protocol; a chain that requests share
    selection, configuration    which provider answers for an agent; ``ikigai.toml``
    named                       those of installed packages, and those that a person names as MODULE:NAME
    limits, prices, windows     how much may be asked at a time, what it costs, how much a model takes
    attachment_limits           how many pictures and the like, and how large
    price_list                  makes the list of prices of what a package knows
    checked, malformed          what was answered, checked once
    token_counts                what services report of tokens, in whatever form
    extra_options               what a service takes and ikigai has no setting for
    remedies, too_long, secrets, address   errors in words for a person, without keys; refusals because of length
    retry_after                 when a service that refuses may be asked again

    anthropic       Anthropic's models, and servers that speak as theirs do: messages_form, message_json,
                    anthropic_reply, anthropic_errors; prompt_cache says what is remembered there
    openai          OpenAI's models, and servers that speak chat completions or Responses: openai_chat,
                    openai_responses, openai_background, openai_parts, openai_schema, openai_errors
    service_client  what both have in common: connections, options, errors
    transport       their connections, keys and certificates
    batches         what they have in common where many requests are answered later; openai_batches
    streamed_reply  what their replies have in common while they arrive; event_stream reads the events
    pydantic_ai     whatever Pydantic AI knows
    function        plain Python; shorthand says what that may return
    scripted        replies written beforehand, for tests
    offline         no model at all; it says what it remembers, so that everything can be tried without a key;
                    stand_in says where it does so though nobody asked for it
"""

from ikigai_actors.lazy import handed_on

__getattr__, __dir__, __all__ = handed_on(__name__)
