"""Components of our own: a Python half that checks what the browser sends, and a JavaScript half with its style beside it."""
