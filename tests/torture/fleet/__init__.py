"""Several hosts that share the agents of one PostgreSQL, under faults; see `tests.torture.fleet.campaign`."""
