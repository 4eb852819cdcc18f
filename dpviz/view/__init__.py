"""Pictures of releases and studies: pydeck maps, Altair charts and the HTML report.

Modules here show what they are given; they import neither `data` nor `mechanisms` nor Streamlit. Texts from files pass `escape`.
"""
