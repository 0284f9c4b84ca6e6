"""The budget ledger: what was spent on which table, kept so that it can be lost by nobody."""
