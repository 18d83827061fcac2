"""What a person reads, as text."""
