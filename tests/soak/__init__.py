"""The soak: a real system under load for a long time, disturbed again and again, and judged after each disturbance.

    python -m tests.soak --minutes 60 --seed 1 --database both --report soak.json

A worker is a host with real threads, whose model is a Messages server in a process of its own, with errors, rate
limits, delays and cut streams. It works in equal rounds and notes everything that was acknowledged in its ledger. The
conductor disturbs it by a seeded plan: ``kill -9``, ``SIGSTOP`` past the lease while another host comes, the database
server restarted, connections cut, the disk full; and sends mail, prompts and signals from outside meanwhile.

ledger.py        what was acknowledged, in a file that outlives its process
model.py         the model: what it answers, and the server that it stands behind
tools.py         its tools, and what they did to the world
crowd.py         the many agents that wait
hands.py         what a worker's threads do to the agents
worker.py        a worker's life: rounds, settling, figures
holdings.py      what a database holds at one moment
judge.py         what may not be: pure, from ledgers, holdings, figures, and what the tools did
places.py        the databases, and what can be done to them; disk.py: the disks of SQLite
disturbances.py  what the conductor does to a worker and its database
conductor.py     the run; stage.py: its workers and its judgements; report.py: what was seen, counted

Linux only: it reads ``/proc``, stops processes and limits files.
"""
