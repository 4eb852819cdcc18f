"""What a page holds, without Streamlit: its settings, what is looked at, and the links, files and code that say the same."""
