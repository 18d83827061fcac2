"""Verbs and acts: the requests that people, scripts and programs make about agents. Each subject has a module."""
