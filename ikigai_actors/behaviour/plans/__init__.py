"""Plans: pure functions of a seed and of verdicts that choose the trials of an experiment.

A plan is asked for trials, and receives verdicts, in the order of the trials' numbers, whatever finishes first. So
the same seed and the same verdicts give the same trials, over any crash and with any parallelism.

    plan.py      the interface of a plan, its trials, and their verdicts
    search.py    best of n, beam, Monte Carlo tree search
    bisect.py    the first bad place of a history, by a judge that errs
    each.py      every case, in every arm, a number of times
"""
