"""The fence around what an agent runs.

| module | what it knows |
|---|---|
| `policy` | what programs may reach: decided from what a person allows (pure) |
| `grounds` | what is on the machine: programs, secrets, the repository of a worktree |
| `tiers` | which fences this kernel can make, in which order they are tried, and what each leaves open |
| `launch` | how the host starts a program: the text of the launcher in a file of its memory |
| `launcher` | what runs there: namespaces, mounts, Landlock, seccomp, and the processes that guard the program |
| `seatbelt` | the same on macOS: a profile for its ``sandbox-exec`` (pure) |
| `private` | the homes and temporary files of programs, and how those of a killed host are found |
| `enclosure` | all of it put together: a fence that was made |
| `doctor` | what holds on this machine, for a person |
"""
