"""The shell: ``ikigai`` at a terminal, by a pipe, and its subcommands.

    cli.py          the command line: the group ``ikigai``, its options and subcommands
    line.py         line mode: reads lines, and does them one after another
    app/            the application on a whole screen
    web/            the application in a browser; orphan.py: its pages end with the server
    options.py      the global options, and what an attached shell says of them
    session.py      where the shell in line mode is, and what goes on in the background
    desk.py         what commands need of a shell, in line mode or in the application
    commands.py     the slash commands; those about mail and documents in mail_commands.py, document_commands.py
    turn.py         a turn that is shown; what the system tells, kept until it is shown
    completion.py   what Tab makes of a line
    keyboard.py     where lines come from: a terminal, or a pipe
    interrupts.py   Ctrl-C and SIGTERM, taken where they do no harm
    screen.py       where everything is printed, made harmless
    tree.py         the tree of agents as text (pure)
    pages.py        an agent's context and history as text (pure)
    beside.py       the subcommands that run no agents; document_tool.py: those about documents
    reader.py       the registry as another process sees it; tail.py: logs; stats.py: figures
    client.py       what another process sends
    demo.py         a tour that plays itself

Only this package imports click.
"""
