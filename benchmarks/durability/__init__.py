"""One task through many runtimes, killed in the middle: what each of them keeps, repeats and loses.

    python -m benchmarks.durability [RUNTIME...] [--repeat N] [--faults KIND[=N]...] [--out DIRECTORY]
    python -m benchmarks.durability judge HISTORIES.jsonl.gz
    python -m benchmarks.durability convictions HISTORIES.jsonl.gz
    python -m benchmarks.durability report DIRECTORY

The model follows a script (`task`). It runs in this process with a ledger of effects (`world`), and every fault strikes
there (`faults`): nobody has to guess when it came. A driver (`drivers`) runs the task as the documentation of its
runtime advises. The verdict (`verdict`) rests on what the world has seen and on what the driver has acknowledged; no
store is read.
"""
