"""The terminal application: the shell on a whole screen, on Textual.

    application.py      what runs it, its threads, its end
    main_screen.py      the page of the current agent, the bars, the tree, the keys
    page.py             one agent: transcript, prompt, and how the transcript is filled
    transcript.py       lines that scroll; block.py, answer.py: parts of them
    pieces.py           messages as pieces (pure); chunks.py: markdown cut up (pure); layout.py: pieces as lines
    prompt.py           where a person types; recall.py, recall_screen.py: what was submitted before
    question_bar.py     a call that waits for the person
    feed.py             what the system tells, kept until it is shown
    snapshot.py         the registry at one moment; bars.py: the bars made of it (pure)
    desk.py             what slash commands work on, and the clerk who does them; printers.py: where they print
    rows.py             a list to choose from: tree_panel.py, process_screen.py, mail_screen.py, document_screen.py
    keys_screen.py      the keys
    logs.py             where the library's log goes meanwhile

Only this package imports Textual and Rich. It is imported when the application starts.
"""
