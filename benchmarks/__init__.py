"""The benchmarks of ikigai-actors: what a fork, a replay, an append and an actor cost, beside what else there is.

    python -m benchmarks [fork] [replay] [journal] [actors] [cache] [--json FILE] [--quick]

Every figure of ours stands beside a peer's or the database's own limit, measured in the same run: trust the ratios,
not the milliseconds. Nothing here fails because something was slow.
"""
