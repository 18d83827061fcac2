"""The fence: a sandbox around the programs that an agent runs.

Its modules:

    policy      the files and networks that programs may reach, from what a person allows (pure)
    grounds     facts about the machine: its programs, secrets, and the repository of a worktree
    tiers       the kinds of fences that this kernel can make, their order of strength, and the gaps of each
    launch      starts a program: the launcher's code in an in-memory file
    launcher    the launcher: namespaces, mounts, Landlock, seccomp, and the processes that guard the program
    seatbelt    the fence of macOS: a profile for its ``sandbox-exec`` (pure)
    private     private homes and temporary files of programs, and the search for those of a killed host
    enclosure   a complete fence, with which programs are started
    doctor      a report for a person on the fence of this machine
"""
