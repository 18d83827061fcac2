"""A host: runs agents, supervises them, shares them with other hosts, and carries out commands of other processes.

Its modules:

    processes           the process table: the actors of this host, and the births, deaths and signals among them
    supervision         the loop of a host for restarts, deadlines, and commits of other processes
    crash_log           log lines about agents that fail
    remote_commands     commands of other processes to agents of this host
    rebalancer          takes and gives shards, so that the host runs its share of the agents; moves agents
    due_timers          carries out due timers and questions of this host's agents
    deliveries, delivery_bodies, task_bodies, http_link   events of this host's agents, sent to receivers outside
    calendar_alarm      an alarm that rings once a time of the calendar has come
    batches             collects requests for batches, and sends the batches for which this host is responsible
    reply_streams       replies in progress, written as rows while other processes listen
    stuck_watch         finds agents in a turn that send no heartbeat
    sign_board          the heartbeats of agents, written for other processes
    sleep_watch         ends the actors of agents that have long been idle
    park_watch          ends the actors of programs that have long been waiting
    importing           imports agents while no agents run
    wait_board          the long waits between agents, written for other hosts
    whereabouts         the agents that this host runs, including those without an actor in memory
"""
