"""Outgoing events: subscriptions, and the outbox of deliveries for each.

events          the kinds of events, and the rows that say who is to hear of one
subscriptions   receivers outside
pushed_tasks    the terms of a subscription to one task of A2A, and `task_subscriptions` the units that change it
deliveries      what became of each event for each subscription
retries         when a try follows, and what the tries say of a receiver
signing         the headers of Standard Webhooks
addresses       which addresses a host may reach
"""
