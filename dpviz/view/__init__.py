"""Pictures: pydeck and Altair, no Streamlit."""
