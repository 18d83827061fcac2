"""Traces: the turns of agents as spans, derived from what is committed.

conventions     the names of OpenTelemetry that spans and metrics use
ids             the id of each span: a hash of stored data
spans           the spans of turns that have ended: a fold of messages
reading         the ended turns of a database as spans, with the links between agents
otlp            spans in the form of OpenTelemetry's protocol, as bytes or as JSON
live            exports turns when they end, and makes the spans of tools and providers their children
metering        measures requests, calls and commits by a meter of OpenTelemetry
sending         sends spans to a collector, and repeats requests that a busy collector refuses
"""
