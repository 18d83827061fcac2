"""Events from outside: endpoints, and what has arrived at each."""
