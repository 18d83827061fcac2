"""Export and import of a branch: a file with agents and all their data.

`format` defines the file, and `export` writes it. `manifest` checks a file, and `preview` shows what it would import.
`graft` imports the rows, with the `keys` of the agents and without the `rights` that must not come along. `verify`
checks the messages in a file against their hashes.
"""
