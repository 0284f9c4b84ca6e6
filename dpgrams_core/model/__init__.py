"""The words of the engine: errors, checks, specs, results, guarantees and measures."""
