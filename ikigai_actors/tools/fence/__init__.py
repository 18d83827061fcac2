"""The fence: a sandbox around the programs that an agent runs.

Its modules:

    policy      which files and networks programs may reach, from what a person allows (pure)
    grounds     the machine: its programs, secrets, and the repository of a worktree
    tiers       which fences this kernel can make, in which order they are tried, and what each leaves open
    launch      how the host starts a program: the launcher's code in an in-memory file
    launcher    the launcher: namespaces, mounts, Landlock, seccomp, and the processes that guard the program
    seatbelt    the same on macOS: a profile for its ``sandbox-exec`` (pure)
    private     the homes and temporary files of programs, and how those of a killed host are found
    enclosure   a complete fence, made of these parts
    doctor      a report for a person on the fence of this machine
"""
