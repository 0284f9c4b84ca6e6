"""Tests with a browser: one server and one browser for the folder, which end with it (they hold an event loop)."""
