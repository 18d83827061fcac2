"""Traces: the turns of agents as spans, derived from what is committed.

conventions     the names of OpenTelemetry that are used
ids             the id of each span: a hash of what rows say
spans           the spans of turns that have ended: a fold of messages
reading         the same of a database, with the links between agents
otlp            spans as OpenTelemetry's protocol has them, as bytes or as JSON
live            exports turns as they end, and lets other spans lie below them
metering        measures requests, calls and commits by a meter of OpenTelemetry
sending         gives them to a collector, with patience
"""
