"""A user's own table: from its file to a release that was paid for."""
