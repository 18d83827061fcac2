"""Export and import of a branch: a file with agents and all their data.

`format` says what a file is, `export` writes it; `manifest` judges it, and `preview` says what it would bring; `graft`
writes its rows, with the `keys` of its agents and without the `rights` that it may not bring along. `verify` compares
the hashes in a file with it.
"""
