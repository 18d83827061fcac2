"""Requests about agents, by people, scripts and programs. A subject has a module."""
