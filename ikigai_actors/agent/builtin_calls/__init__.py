"""The tools that the runtime itself carries out: a file for each feature, and `table`, which lists them."""
