"""Many runs over a grid: planned, computed in parallel, kept and continued."""
