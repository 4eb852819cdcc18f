"""Widgets and components that pages share. One of our own has a Python half that checks what the browser sends, and a JavaScript half."""
