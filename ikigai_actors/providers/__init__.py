"""Providers: the code that sends the requests of agents to models.

The package exports the providers that programs need. A provider is imported when it is first used.

    base                        the interface of a model, and its types: all that a provider needs to know of ikigai
    blocks, conversation        the blocks of a conversation, independent of any protocol; a chain that requests share
    selection, configuration    the choice of an agent's provider; the file ``ikigai.toml``
    named                       providers of installed packages, and providers that a person names as MODULE:NAME
    limits, prices, windows     limits of requests to a service; prices of models; how many tokens a model takes
    attachment_limits           limits of pictures, documents and sounds in a request
    price_list                  makes the list of prices from the data of the package ``genai-prices``
    checked, malformed          a provider's answer, checked once; errors for data that breaks a protocol
    token_counts                counts of tokens as services report them, in any form
    extra_options               the setting ``options``: fields that a service takes and ikigai has no setting for
    remedies, too_long, secrets, address   error texts; refusals because of length; removal of keys; checks of URLs
    retry_after                 the time after which a service accepts a refused request again

    anthropic       Anthropic's models, and other servers of the Messages API: messages_form, message_json,
                    anthropic_reply, anthropic_errors; prompt_cache: the breakpoints of the prompt cache
    openai          OpenAI's models, and servers that speak chat completions or Responses: openai_chat,
                    openai_responses, openai_background, openai_parts, openai_schema, openai_errors
    service_client  the client of either service, its options and errors; connections: the HTTP client of every provider
    transport       the connections of these clients; checks of keys and certificates
    batches         the batches of a service, answered within a day; openai_batches: the results of OpenAI's batches
    streamed_reply  the common part of streamed replies; event_stream reads the server-sent events
    pydantic_ai     any model that Pydantic AI knows
    function        a Python function as a provider; shorthand: the values that it may return instead of a reply
    scripted        replies written beforehand, for tests
    offline         a provider without a model, to try ikigai without a key: its answers list the earlier prompts;
                    stand_in: the rule by which it may answer though nobody chose it
"""

from ikigai_actors.lazy import handed_on

__getattr__, __dir__, __all__ = handed_on(__name__)
