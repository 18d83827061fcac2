"""The state machine that makes programs of agents up, and what must hold of each."""
