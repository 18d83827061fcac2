"""The state machine that makes up programs of agents, and the invariants that must hold of each."""
