"""What ran, what it costs, how much noise it needs, and the noise itself. Knows no method."""
