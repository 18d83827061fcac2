"""What the benchmarks compare with: others that store conversations (`sessions`), others that run actors (`actors`)."""
