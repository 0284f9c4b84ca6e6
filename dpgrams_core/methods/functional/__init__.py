"""The functional release: one noisy function, and all that is read off it."""
