"""The network API: every verb of the table by HTTP, turns by handles, lists, and streams of events.

    app.mount("/agents", api(system, principal_of))     # in a FastAPI or Starlette application
    await serve_api(system, listening, stop)            # by itself: ``ikigai api``

    application          the routes of the API
    requests, answers    the body, the key and the values of a request; JSON answers and their headers
    files                uploads, and files of messages
    feeds                the stream of all agents in reach
    problems             refusals, each a code with a status
    operations, openapi  the verbs as paths; the OpenAPI document of all paths
    question_pages       the pages of signed links
    a2a_operations       the operations of A2A on agents with a card, for agents of other systems
    a2a_tasks, a2a_problems   tasks and refusals in the form of A2A
    a2a_listing          the list of tasks
    a2a_pushes           the receivers to which tasks are pushed
    limits               limits on the requests of one principal, or of one address
    serving              serves the API until a signal comes

The API uses only the rows of an attached system. So any number of API processes can run beside any number of hosts, and
a killed process loses nothing that was acknowledged. The reading and writing of rows is in `ikigai_actors.reach`: keys,
requests, pages, news.
"""
