"""Pictures of releases and studies: maps for the canvas and as SVG, Altair charts and the HTML report.

Modules here show what they are given; they import neither `data` nor `mechanisms` nor Streamlit. Texts from files pass `escape`.
"""
