"""The calls of models that the runtime itself carries out."""
