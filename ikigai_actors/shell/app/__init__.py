"""The terminal application: the shell on a whole screen, on Textual.

    application.py      what runs it, its threads, its end; driver.py: how it reads the keyboard
    agent_page.py       one agent: transcript, prompt, and how the transcript is filled
    screens/            the main screen, and those of keys, agents, mail and documents
    transcript/         lines that scroll, and what they are made of
    widgets/            the prompt, the bars, the tree, the bar of questions
    page_events.py      events of the system, kept until they are shown
    place.py            what slash commands work on, and the thread that runs them; output.py: where they print
    input_history.py earlier prompts; pastes.py: pastes, distinguished from keys;
                        typed_key.py: which keys are text
    logs.py             where the library's log goes meanwhile; terminal.py: a terminal that vanishes

Only this package imports Textual. The package is imported when the application starts.
"""
