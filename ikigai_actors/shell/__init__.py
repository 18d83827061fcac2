"""The shell: ``ikigai`` at a terminal, by a pipe, and its subcommands.

    cli.py          the command line: the group ``ikigai``, its options and subcommands
    line.py         line mode: reads lines, and does them one after another
    app/            the application on a whole screen
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
    reader.py       the registry as another process sees it
    client.py       what another process sends
    demo.py         a tour that plays itself

Only this package imports click.
"""
