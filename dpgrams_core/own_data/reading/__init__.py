"""Files that nobody has looked at yet, read with bounds on memory, time and size."""
