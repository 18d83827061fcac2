"""The tools that the runtime itself carries out: a file for each subject, and `table`, which lists all of them."""
