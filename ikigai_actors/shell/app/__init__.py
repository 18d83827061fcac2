"""The terminal application: the shell on a whole screen, on Textual.

    application.py      the application, its threads, its end; driver.py: the keyboard
    agent_page.py       one agent: transcript, prompt, and how the transcript is filled
    screens/            the main screen, and those of keys, agents, mail and documents
    transcript/         the transcript of an agent, as lines that scroll
    widgets/            the prompt, the bars, the tree, the bar of questions
    page_events.py      events of the system, kept until they are shown
    place.py            the place of slash commands, and the thread that runs them; output.py: their printed lines
    input_history.py earlier prompts; pastes.py: pastes, distinguished from keys;
                        typed_key.py: keys as typed text
    logs.py             the log of the library, written to a file; terminal.py: a terminal that vanishes

Only this package imports Textual. The package is imported when the application starts.
"""
