"""What stands around the pages: doors, uploads, quotas, visitors."""
