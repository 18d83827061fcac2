"""The benchmarks of ikigai-actors: what a fork, a replay, an append, an actor, a mail and a death cost, beside others.

    python -m benchmarks [NAME...] [--results FILE] [--quick] [--only DATABASE]
    python -m benchmarks.report

The first measures: all of it, or what is named. Every figure of ours stands beside a peer's or the database's own
limit, measured in the same run: trust the ratios, not the milliseconds. Peers that are not installed are named as such.
The second puts the committed results into docs/engineering/figures.md, and draws its plots. Nothing here fails
because something was slow.
"""
