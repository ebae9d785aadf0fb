"""One module or package for each command; `command` is the click command."""
