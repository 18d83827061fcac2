"""The durability benchmark: its verdicts, its proofs, and a few plays."""
