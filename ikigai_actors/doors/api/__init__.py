"""The network API: every verb of the table by HTTP, turns by handles, lists, and streams of events.

    app.mount("/agents", api(system, principal_of))     # in a FastAPI or Starlette application
    await serve_api(system, listening, stop)            # by itself: ``ikigai api``

    application          the routes
    requests, answers    the arguments of requests, and refusals
    files                uploads, and files of messages
    feeds                the stream of all agents in reach
    problems             refusals, by their codes
    operations, openapi  the verbs as paths, and the page that lists them
    question_pages       the pages of signed links
    a2a_operations       agents with a card, for agents of other systems
    a2a_tasks, a2a_problems   tasks and refusals as A2A has them
    a2a_listing          the list of tasks
    a2a_pushes           the receivers to which tasks are pushed
    limits               how much one principal, or one address, may ask for
    serving              until a signal comes

The API uses only the rows of an attached system. So any number of API processes can run beside any number of hosts, and
a killed process loses nothing that was acknowledged. The reading and writing of rows is in `ikigai_actors.reach`: keys,
requests, pages, news.
"""
