"""Events from outside: endpoints, and their arrivals."""
