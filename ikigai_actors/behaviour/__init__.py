"""Git for behaviour: search from any position of a history, bisect it, replay it with a change, keep it as a test.

plans/           which trials are made, given verdicts: pure
statistics.py    rates of cases, their intervals, the difference of two arms
"""
