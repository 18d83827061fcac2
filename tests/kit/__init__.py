"""What the tests stand on: databases, providers that a test holds, programs, terminals, faults."""
