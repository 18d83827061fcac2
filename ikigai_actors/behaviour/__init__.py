"""Git for behaviour: search from any position of a history, bisect it, replay it with a change, keep it as a test.

    from ikigai_actors.behaviour import MCTS, search

    outcome = search(agent, judge, plan=MCTS(trials=200), options=["Your next step."])
    outcome.keep("winner")

The agent itself gets no request and no message. Each trial is a fork below an agent that is the experiment, and the
calls of its model have no effects outside. Killed in the middle, the same call goes on.

    searches             the best continuation of a history
    bisections           from where on a history is bad, with a judge that errs
    turns, files         the turns of a log, as cases; those of an exported file
    replays, cases       recorded turns once more, with a change; where each begins
    differences          what differs in a replayed turn
    listing              what lists of agents, and the page, say of experiments
    verbs, trial_lines   what people and scripts ask of experiments, and how trials are worded
    pages, facts         the forms that reports have; what they say of an experiment
    expectations         what trials are expected to ask, by the record
    forecasts            the sum of that, and what it costs, said before the first request: pure
    regressions, checks  how often a change is right, and whether that is worse; what counts as right
    experiment, book     the agent that makes trials; its log, with their births and verdicts
    driver, window       what makes them in their order; those that are in flight, until they are judged
    trials               where one begins, and what comes of it
    runs, results        how an experiment is run; what all its results have
    judges, programs     a model, a program or an evaluator as a judge; how a program is run
    fingerprints         whether a verdict is that of this check
    effects              what a trial's calls may do
    plans/               which trials are made, given verdicts: pure
    rates, statistics    the verdict on scores; intervals
"""

from ikigai_actors.lazy import handed_on

__getattr__, __dir__, __all__ = handed_on(__name__)
