"""One agent: the turn as a pure step function, what it carries out itself, its actor and its effects."""
