"""What the pages share; the only library code that imports streamlit."""
