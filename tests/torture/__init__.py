"""The crash test: a tree at work is killed at random moments, again and again, and each time everything is looked over.

    python -m tests.torture --kills 300 --seed 1

script.py    the model and its tools: a reply depends on its request alone, so a resumed turn goes the same way
victim.py    the process that works on the tree until it is killed, and reports what the library acknowledged
kill.py      starts a victim and kills it at a moment that chance has chosen
snapshot.py  what a database holds at one moment
judge.py     what may not be: pure, from reports, snapshots, and what the tools did to the world
campaign.py  kills, restarts, judgements, again and again
tally.py     what was seen, counted
"""
