"""The benchmarks that judge: whether their judges convict what is wrong, and nothing else."""
