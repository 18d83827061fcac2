"""A system in a simulated world: threads, time, the database and its faults."""
