"""Find and test behaviour changes: search from any position of a history, bisect it, replay it, keep it as a test.

    from ikigai_actors.behaviour import MCTS, search

    outcome = search(agent, judge, plan=MCTS(trials=200), options=["Your next step."])
    outcome.keep("winner")

The agent itself gets no request and no message. Each trial is a fork below an agent that is the experiment, and the
calls of its model have no effects outside. If the process is killed, the same call, made again, goes on.

    searches             the search for the best continuation of a history
    bisections           the search for the position from which a history is bad, with a judge that may err
    turns, files         the turns of a log, as cases; turns from an exported file
    replays, cases       replays of recorded turns with a change; the start and the records of each replay
    differences          the differences between a recorded turn and its replay
    listing              experiments in lists of agents and on the observer's page
    verbs, trial_lines   verbs about experiments; a line of text for each judged trial
    pages, facts         reports of experiments as lines, JSON and HTML; the facts in these reports
    expectations         the expected requests of trials, from the recorded requests
    forecasts            the number of an experiment's requests and their cost, before the first request: pure
    regressions, checks  how often a change is right, compared with before; checks of replayed turns
    experiment, book     the agent whose children are the trials; its log, with their births and verdicts
    driver, window       the driver, which makes trials and gives their verdicts to the plan; the trials in flight
    trials               the start of a trial, and its outcome for a judge
    runs, results        the options with which an experiment runs; the common part of all results
    judges, programs     a model, a program or an evaluator as a judge; runs of programs that judge a text
    fingerprints         fingerprints, by which a stored verdict is matched to the present judge or check
    effects              the setting ``effects``: which calls a trial may make
    plans/               plans, which choose the trials of an experiment, given verdicts: pure
    rates, statistics    the verdict on scores of cases; intervals of rates
"""

from ikigai_actors.lazy import handed_on

__getattr__, __dir__, __all__ = handed_on(__name__)
