"""Outgoing events: subscriptions, and the outbox of deliveries for each.

events          the kinds of events, and the rows for the subscriptions that want an event
subscriptions   table ``subscriptions``: receivers outside, and the events that each gets
pushed_tasks    the terms of a subscription to one task of A2A, and `task_subscriptions`: its units
deliveries      the outbox: each event once for each subscription, with its outcome
retries         the time of the next attempt, and what failures mean for a subscription
signing         the headers of Standard Webhooks
addresses       the addresses to which a host may send
"""
