"""A host: runs agents, supervises them, shares them with other hosts, and carries out commands of other processes.

Its modules:

    processes           the actors that run here: births, deaths and signals as they concern them
    supervision         the one loop of a host: restarts, deadlines, what others have committed
    crash_log           what the log says of agents that fail
    remote_commands     what other processes ask of agents here
    rebalancer          takes and gives shares, moves agents
    due_timers          mail that comes later
    deliveries, delivery_bodies, task_bodies, http_link   events of agents here, sent to receivers outside
    calendar_alarm      a time of the calendar for which a loop waits
    batches             requests of agents here that wait for a batch, and the batches of services whose seats are here
    reply_streams       replies on their way, written while other processes listen
    stuck_watch         agents in a turn that send no heartbeat
    sign_board          the signs of those that do, for other processes
    sleep_watch         who has rested for long, and gives up its actor
    park_watch          which program waits for long, and gives up its actor
    importing           an import while no agents run
    wait_board          which agents wait for which, for other hosts
    whereabouts         which agents are here, those that sleep too, for who follows the log
"""
