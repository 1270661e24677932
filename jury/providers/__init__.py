"""Providers: the clients that ask jurors, one class for each vendor and cloud, and their registry."""
