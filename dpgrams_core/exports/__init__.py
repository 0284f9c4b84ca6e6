"""What leaves the page as a file: settings, scripts, reports, tables."""
