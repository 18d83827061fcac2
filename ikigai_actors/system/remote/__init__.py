"""Agents that other processes run: asked by rows, and followed through the database."""
