"""Actors that need no thread of their own: inbox, dispatcher, futures, and the seam to threads and time."""
